/*
 * dispatched: a thread with syscall user dispatch (prctl(2), PR_SET_SYSCALL_USER_DISPATCH), as emulators use it: its
 * system calls raise SIGSYS, except those of one place.
 *
 * Prints "ready PID", or "none" where that cannot be had. The thread calls do_work, and makes a call now and then that
 * its handler answers, and one at that place. Given an argument, it does so from "on" on, which is answered by "on",
 * and makes the first of these calls undispatched until then. At "check N" it prints "right N", or "wrong", by whether
 * all is as it should be while N more such calls are made. At another line it ends, and prints "made M handled T bad
 * B": the calls that it made to be answered, those of them that its handler got, and calls that the handler got
 * wrongly.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { set_dispatch = 59, dispatch_on = 1, answer = 4242 }; /* PR_SET_SYSCALL_USER_DISPATCH */

static volatile char dispatches;
static volatile int stop, on = 1, begun; /* begun: 1, or -1: it cannot be had */
static volatile long made, handled, bad;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

#if defined(__x86_64__)
extern char call_site[], allowed_site[], allowed_end[];
__attribute__((noinline)) static long make_allowed_call(void) {
    long result;

    __asm__ volatile(".globl allowed_site\n"
                     "allowed_site: syscall\n"
                     "allowed_end: nop"
                     : "=a"(result)
                     : "a"(SYS_gettid)
                     : "rcx", "r11", "memory");
    return result;
}
__attribute__((noinline)) static long make_call(void) {
    long result;

    __asm__ volatile(".globl call_site\n"
                     "call_site: syscall"
                     : "=a"(result)
                     : "a"(SYS_getpid)
                     : "rcx", "r11", "memory");
    return result;
}

static void on_call(int sig, siginfo_t *info, void *context) {
    ucontext_t *at = context;

    (void)sig;
    dispatches = 0; /* for the return from here */
    handled++;
    if (info->si_syscall != SYS_getpid || (char *)info->si_call_addr != call_site + 2) bad++;
    if (at->uc_mcontext.gregs[REG_RIP] != (long)(call_site + 2)) bad++;
    if (at->uc_mcontext.gregs[REG_RCX] != (long)(call_site + 2)) bad++;
    at->uc_mcontext.gregs[REG_RAX] = answer;
}
#else
static char allowed_site[1], *allowed_end = allowed_site;
static long make_allowed_call(void) { return 0; }
static long make_call(void) { return answer; }
static void on_call(int sig, siginfo_t *info, void *context) {
    (void)sig;
    (void)info;
    (void)context;
}
#endif

static void *work(void *arg) {
    const long self = (long)syscall(SYS_gettid);

    while (!stop && !on)
        if (make_call() != getpid()) bad++;
    /* The address behind the call is judged. */
    begun = prctl(set_dispatch, dispatch_on, allowed_site, allowed_end - allowed_site + 1, &dispatches) == 0 ? 1 : -1;
    while (!stop && begun == 1) {
        dispatches = 1;
        for (long i = 0; i < 100000; i++)
            if (do_work(i) != i * 3 + 1) bad++;
        if (make_allowed_call() != self) bad++;
        if (make_call() != answer) bad++;
        made++;
        dispatches = 0;
    }
    return arg;
}

static void wait_until_made(long count) {
    while (made < count) usleep(1000);
}

static void check(long count) {
    long bad_before;

    wait_until_made(made + 2); /* not the one that is being made */
    bad_before = bad;
    wait_until_made(made + count);
    printf(bad == bad_before ? "right %ld\n" : "wrong\n", count);
    fflush(stdout);
}

int main(int argc, char **argv) {
    struct sigaction action;
    pthread_t worker;
    char line[64];

    (void)argv;
    on = argc == 1;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_call;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, NULL);
    pthread_create(&worker, NULL, work, NULL);
    while (on && begun == 0) usleep(1000);
#if !defined(__x86_64__)
    begun = -1;
#endif
    if (begun < 0) {
        printf("none\n");
        return 0;
    }
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (strncmp(line, "check ", 6) == 0) {
            check(atol(line + 6));
        } else if (strcmp(line, "on\n") == 0) {
            on = 1;
            wait_until_made(2);
            printf("on\n");
            fflush(stdout);
        } else {
            break;
        }
    }
    stop = 1;
    pthread_join(worker, NULL);
    printf("made %ld handled %ld bad %ld\n", made, handled, bad);
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) continue;
    return 0;
}
