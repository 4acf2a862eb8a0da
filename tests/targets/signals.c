/*
 * signals CALLS: calls work_hot while a 1 kHz profiling timer interrupts it, and checks in the handler that no pc is
 * where none of its own code is. Prints "ready PID", then for a line "hot N ticks T bad B"; its registers are checked
 * throughout.
 */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile long ticks, bad;
static unsigned long text_low[64], text_high[64];
static int texts;

static int note_text(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    for (int i = 0; i < info->dlpi_phnum && texts < 64; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
            text_low[texts] = info->dlpi_addr + p->p_vaddr;
            text_high[texts++] = info->dlpi_addr + p->p_vaddr + p->p_memsz;
        }
    }
    return 0;
}

static void on_tick(int signal, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
#if defined(__x86_64__)
    unsigned long pc = (unsigned long)uc->uc_mcontext.gregs[REG_RIP];
#else
    unsigned long pc = uc->uc_mcontext.pc;
#endif
    int known = 0;

    (void)signal;
    (void)info;
    for (int i = 0; i < texts; i++) known |= pc >= text_low[i] && pc < text_high[i];
    if (!known) bad++;
    ticks++;
}

__attribute__((noinline)) long work_hot(long n) {
    char text[32];

    __asm__ volatile("" ::: "memory");
    memset(text, (int)n, sizeof(text));
    __asm__ volatile("" : : "r"(text) : "memory");
    return n + text[3] - (char)n;
}

int main(int argc, char **argv) {
    long calls = argc > 1 ? atol(argv[1]) : 1000;
    struct itimerval timer = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    struct sigaction action;
    char line[64];

    dl_iterate_phdr(note_text, NULL);
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_tick;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGALRM, &action, NULL);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        ticks = bad = 0;
        setitimer(ITIMER_REAL, &timer, NULL);
        for (long i = 0; i < calls; i++)
            if (work_hot(i) != i) return 3;
        setitimer(ITIMER_REAL, &off, NULL);
        printf("hot %ld ticks %ld bad %ld\n", calls, ticks, bad);
        fflush(stdout);
    }
    return 0;
}
