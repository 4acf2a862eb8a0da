/*
 * traps: a program with a handler for SIGTRAP and traps of its own.
 *
 * Prints "ready PID" and, for each line "WAY N", "WAY WANTED handled H bad B calls CALLS": how many traps there had to
 * be and were, and how often one was delivered at another place than the program's own text, or with another si_code.
 *
 * WAY, N times:
 *     break    a trap instruction, and a call of do_work
 *     step     a call of do_work with the trap flag set (x86), so that each of its instructions ends in a trap
 *     watch    a write to data that perf_event_open(2) watches, with SIGTRAP for it; WANTED is -1 where it cannot be
 *     again    SIGTRAP, in whose handler another one is sent: handled when it has returned
 *     send     SIGTRAP from another thread, in the midst of calls of do_work, of which each is checked
 *
 * WANTED is, for `send`, how many were handled: the kernel keeps one SIGTRAP for a thread, and drops one that comes
 * when a trap's waits.
 *
 * CALLS is how often do_work was called.
 */
#define _GNU_SOURCE
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "machine.h"

enum { perf_trap = 6 }; /* TRAP_PERF */

extern char __executable_start, etext;
volatile long handled, watched, seen_in_handler;
static volatile long bad, wanted_code, depth, calls, sending;
static volatile int sends_again;
static pthread_t main_thread;

static int is_own(unsigned long at) { return at >= (unsigned long)&__executable_start && at < (unsigned long)&etext; }

__attribute__((noinline)) long in_handler(long n) {
    /* an instruction of one byte, where that is what an instruction may have */
#if defined(__x86_64__)
    __asm__ volatile("xchg %%rax, %0\n.globl handler_byte\nhandler_byte:\npush %%rax\npop %%rax\nxchg %%rax, %0"
                     : "+r"(n)::"memory");
#else
    __asm__ volatile(".globl handler_byte\nhandler_byte:\nnop" ::: "memory");
#endif
    return n + 1;
}

static void on_trap(int sig, siginfo_t *info, void *context) {
    unsigned long pc = (unsigned long)PC_OF((ucontext_t *)context);

    (void)sig;
    if (++depth > 1 && sends_again) bad++;
    handled++;
    seen_in_handler = in_handler(handled);
    if (sends_again && handled % 2 != 0) {
        raise(SIGTRAP);
        seen_in_handler = in_handler(handled);
    }
    if ((!is_own(pc) && !sends_again) || info->si_code != wanted_code) bad++;
    if (info->si_code == TRAP_TRACE && (unsigned long)info->si_addr != pc) bad++;
    if (info->si_code == TRAP_BRKPT) PC_OF((ucontext_t *)context) += trap_rest;
    depth--;
}

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static long break_here(long times) {
#if defined(__x86_64__)
    wanted_code = SI_KERNEL;
#else
    wanted_code = TRAP_BRKPT;
#endif
    for (long i = 0; i < times; i++) {
        do_work(i);
        __asm__ volatile(TRAP);
    }
    return times;
}

#if defined(__x86_64__)
/* Steps through do_work; answers how many instructions there were by the same way without traps in it. */
__attribute__((noinline)) static void step_once(long (*function)(long)) {
    __asm__ volatile("pushfq\n"
                     "orl $0x100, (%%rsp)\n"
                     "popfq\n"
                     "movl $5, %%edi\n"
                     "call *%%rbx\n"
                     "pushfq\n"
                     "andl $~0x100, (%%rsp)\n"
                     "popfq\n"
                     "nop\n"
                     :
                     : "b"(function)
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

/* The same code as do_work's, without a probe. */
__attribute__((noinline)) long do_alike(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}
#endif

static long step(long times) {
#if defined(__x86_64__)
    long once;

    wanted_code = TRAP_TRACE;
    step_once(do_alike);
    once = handled;
    handled = 0;
    for (long i = 0; i < times; i++) step_once(do_work);
    return times * once;
#else
    (void)times;
    return -1;
#endif
}

static long watch(long times) {
    struct perf_event_attr attributes;
    int fd;

#if !defined(__x86_64__)
    return -1; /* such a trap comes before the access, and once more behind each return from its handler */
#endif
    wanted_code = perf_trap;
    memset(&attributes, 0, sizeof(attributes));
    attributes.type = PERF_TYPE_BREAKPOINT;
    attributes.size = sizeof(attributes);
    attributes.bp_type = HW_BREAKPOINT_W;
    attributes.bp_addr = (unsigned long)&watched;
    attributes.bp_len = sizeof(watched);
    attributes.sample_period = 1;
    attributes.exclude_kernel = attributes.exclude_hv = 1;
    attributes.remove_on_exec = attributes.sigtrap = 1;
    fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
    if (fd < 0) return -1;
    for (long i = 0; i < times; i++) watched = do_work(i);
    close(fd);
    return times;
}

static long again(long times) {
    wanted_code = SI_TKILL;
    sends_again = 1;
    for (long i = 0; i < times; i++) {
        do_work(i);
        raise(SIGTRAP);
    }
    sends_again = 0;
    return 2 * times;
}

static void *send_some(void *times) {
    while (calls == 0) continue;
    for (long i = 0; i < (long)times; i++) pthread_kill(main_thread, SIGTRAP);
    sending = 0;
    return NULL;
}

static long send_from_other(long times) {
    pthread_t sender;
    long result;

    wanted_code = SI_TKILL;
    sending = 1;
    if (pthread_create(&sender, NULL, send_some, (void *)times)) return -2;
    while (sending) {
        result = do_work(calls);
        if (result != calls++ * 3 + 1) bad++;
    }
    pthread_join(sender, NULL);
    return handled;
}

int main(void) {
    struct sigaction action;
    char line[64], way[32];
    long times, wanted = 0;

    main_thread = pthread_self();
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "%31s %ld", way, &times) != 2) return 2;
        handled = bad = calls = 0;
        if (strcmp(way, "break") == 0) wanted = break_here(times);
        if (strcmp(way, "step") == 0) wanted = step(times);
        if (strcmp(way, "watch") == 0) wanted = watch(times);
        if (strcmp(way, "again") == 0) wanted = again(times);
        if (strcmp(way, "send") == 0) wanted = send_from_other(times);
        printf("%s %ld handled %ld bad %ld calls %ld\n", way, wanted, handled, bad, calls);
        fflush(stdout);
    }
    return 0;
}
