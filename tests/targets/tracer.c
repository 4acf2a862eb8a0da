/*
 * tracer: traces children of its own, from the moment when it has them.
 *
 * Prints "ready PID" and, for each line "WAY N", does WAY N times and prints "WAY N refused R bad B": how often it was
 * not allowed to trace, and how often anything else was not as ptrace(2) and wait(2) have it. WAY:
 *   seize    PTRACE_SEIZE right behind fork, and an interrupt
 *   attach   PTRACE_ATTACH right behind fork
 *   traceme  a child that asks for it, with a trap instruction and a hardware breakpoint
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { not_allowed = 77, as_told = 5 };

volatile long word;
static long refused, bad;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static int next_status(pid_t child) {
    int status = 0;

    if (waitpid(child, &status, 0) != child) bad++;
    return status;
}

static void end(pid_t child) {
    int status;

    kill(child, SIGKILL);
    do status = next_status(child);
    while (WIFSTOPPED(status));
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) bad++;
}

static void trace(int seizes) {
    pid_t child = fork();
    int status;

    if (child == 0)
        for (;;) pause();
    if (ptrace(seizes ? PTRACE_SEIZE : PTRACE_ATTACH, child, NULL, NULL) != 0) {
        if (errno == EPERM) refused++;
        if (errno != EPERM) bad++;
    } else {
        if (seizes && ptrace(PTRACE_INTERRUPT, child, NULL, NULL) != 0) bad++;
        status = next_status(child);
        if (!WIFSTOPPED(status) || WSTOPSIG(status) != (seizes ? SIGTRAP : SIGSTOP)) bad++;
    }
    end(child);
}

static void be_traced(void) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(not_allowed);
    raise(SIGSTOP);
    do_work(1);
#if defined(__x86_64__)
    __asm__ volatile("int3");
#else
    raise(SIGTRAP);
#endif
    word = 5;
    do_work(2);
    _exit(as_told);
}

/* A breakpoint on writes to `word`. How many traps there will be. */
static long set_breakpoint(pid_t child) {
#if defined(__x86_64__)
    if (ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg[0]), &word) != 0) return 1;
    return ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg[7]), 0xd0001) == 0 ? 2 : 1;
#else
    (void)child;
    return 1;
#endif
}

static void trace_willing(void) {
    pid_t child = fork();
    long traps = 0, wanted;
    int status;

    if (child == 0) be_traced();
    status = next_status(child);
    if (WIFEXITED(status)) {
        if (WEXITSTATUS(status) == not_allowed) refused++;
        if (WEXITSTATUS(status) != not_allowed) bad++;
        return;
    }
    wanted = set_breakpoint(child);
    while (WIFSTOPPED(status)) {
        ptrace(PTRACE_CONT, child, NULL, NULL);
        status = next_status(child);
        traps += WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
    }
    if (traps != wanted || !WIFEXITED(status) || WEXITSTATUS(status) != as_told) bad++;
}

int main(void) {
    char line[64], way[32];
    long times;

    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "%31s %ld", way, &times) != 2) return 2;
        refused = bad = 0;
        for (long i = 0; i < times; i++) {
            if (strcmp(way, "traceme") == 0)
                trace_willing();
            else
                trace(strcmp(way, "seize") == 0);
        }
        printf("%s %ld refused %ld bad %ld\n", way, times, refused, bad);
        fflush(stdout);
    }
    return 0;
}
