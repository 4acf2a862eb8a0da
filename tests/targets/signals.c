/*
 * signals CALLS [CLOCK]: calls work_hot while a 1 kHz timer interrupts it, and checks in the handler that no pc is
 * where none of its own code is. CLOCK: real (default) and prof, by setitimer(2); process and thread, by
 * timer_create(2) on the processor time of either. Prints "ready PID", then for a line "hot N ticks T bad B early E
 * late L of M"; its registers are checked throughout. E: handlers that were called before so many milliseconds of that
 * clock were over; for prof more often than the kernel's tick came, by which alone that timer's time passes: a tick
 * that finds the process running counts as a whole one, however little of it that is. L: how many of them came to no
 * handler in the end (with process and thread, where the kernel counts all), of M.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "own_text.h"

enum { tick_ns = 1000000, last_ticks = 10 };

static volatile long ticks, bad, expired, early, late; /* expired: the ticks, and those that were told with them */
static clockid_t clock_id = CLOCK_MONOTONIC;
static timer_t timer;
static long started, started_real; /* when, by its clock and by CLOCK_MONOTONIC */
static long tick_period;           /* of the kernel, ns */
static int which = ITIMER_REAL, by_timer;

static long time_of(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static long milliseconds(void) { return (time_of(clock_id) - started) / tick_ns; }

static int is_early(void) {
    /* The first tick may come at once, and a late one right before the next. */
    if (which == ITIMER_PROF) return expired > (time_of(CLOCK_MONOTONIC) - started_real) / tick_period + 2;
    return expired > milliseconds();
}

static void on_tick(int signal, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
#if defined(__x86_64__)
    unsigned long pc = (unsigned long)uc->uc_mcontext.gregs[REG_RIP];
#else
    unsigned long pc = uc->uc_mcontext.pc;
#endif

    (void)signal;
    expired += 1 + (by_timer ? info->si_overrun : 0);
    if (is_early()) early++;
    if (milliseconds() - expired < late) late = milliseconds() - expired;
    if (!is_own(pc)) bad++;
    ticks++;
}

__attribute__((noinline)) long work_hot(long n) {
    char text[32];

    __asm__ volatile("" ::: "memory");
    memset(text, (int)n, sizeof(text));
    __asm__ volatile("" : : "r"(text) : "memory");
    return n + text[3] - (char)n;
}

/* Of several threads that might get it, this one. */
static void make_timer(void) {
    struct sigevent event;

    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    if (timer_create(clock_id, &event, &timer) != 0) exit(2);
}

static void set_timer(long each_ns) {
    struct itimerval interval = {{0, each_ns / 1000}, {0, each_ns / 1000}};
    struct itimerspec each = {{0, each_ns}, {0, each_ns}};

    if (by_timer)
        timer_settime(timer, 0, &each, NULL);
    else
        setitimer(which, &interval, NULL);
}

static void choose(const char *name) {
    if (strcmp(name, "prof") == 0) which = ITIMER_PROF;
    if (strcmp(name, "thread") == 0) clock_id = CLOCK_THREAD_CPUTIME_ID;
    if (strcmp(name, "prof") == 0 || strcmp(name, "process") == 0) clock_id = CLOCK_PROCESS_CPUTIME_ID;
    by_timer = strcmp(name, "thread") == 0 || strcmp(name, "process") == 0;
    if (by_timer) make_timer();
}

static void run(long calls) {
    ticks = bad = expired = early = 0;
    started = time_of(clock_id);
    started_real = time_of(CLOCK_MONOTONIC);
    set_timer(tick_ns);
    for (long i = 0; i < calls; i++)
        if (work_hot(i) != i) exit(3);
    late = milliseconds();
    for (long end = ticks + last_ticks; ticks < end;) continue;
    set_timer(0);
    printf("hot %ld ticks %ld bad %ld early %ld late %ld of %ld\n", calls, ticks, bad, early, late, milliseconds());
    fflush(stdout);
}

int main(int argc, char **argv) {
    long calls = argc > 1 ? atol(argv[1]) : 1000;
    struct sigaction action;
    struct timespec coarse;
    char line[64];

    note_text();
    clock_getres(CLOCK_MONOTONIC_COARSE, &coarse);
    tick_period = coarse.tv_nsec;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_tick;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGPROF, &action, NULL);
    choose(argc > 2 ? argv[2] : "real");
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) run(calls);
    return 0;
}
