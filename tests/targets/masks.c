/*
 * masks: threads that block SIGTRAP, with a few other signals, or all signals, and look at what is blocked after each
 * call of a function that is to be probed.
 *
 * Its first thread blocks SIGTRAP and SIGUSR1, unless it is given an argument. Prints "ready PID" and obeys lines on
 * standard input, `WHAT N`:
 *
 *     keep N     four threads, which have the first one's mask, N times each: call hit(), block all signals and call it
 *                again, and set their mask back; every tenth time in a handler, in a new thread or in a child, too.
 *                "keep N hits H bad B": H without those of children, B with them
 *
 *     forks N    N children, while another thread that blocks all signals calls hit(): their action for SIGTRAP before
 *                they come by a trap.  "forks N caught C", C of them a handler
 *
 *     later N    the first thread N times: blocks SIGTRAP alone, calls hit() 20 times, and sets its mask back.
 *                "later N hits H open O caught C": O times SIGTRAP was open behind the first call, C times the process
 *                had a handler for it behind the last one
 *
 *     open N     the first thread N times: blocks all signals and calls hit(), opens them and calls it again, all by
 *                library functions and by a handler's sa_mask; then, while another thread that blocks all signals
 *                calls it.  "open N hits H bad B"
 *
 * bad: a mask that is not as the program set it. At the end of its input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 4 };

static atomic_long hits, bad;

/* Sets have a bit a signal, from bit 0 for signal 1. */
typedef unsigned long set_t;

static set_t bit(int sig) { return 1ul << (sig - 1); }

__attribute__((noinline)) void hit(void) { __asm__ volatile("" ::: "memory"); }

/* Asked of the kernel itself, unseen by probes. */
static set_t blocked_now(void) {
    set_t now = 0;

    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &now, sizeof now);
    return now;
}

static long wrong(set_t expected) { return blocked_now() != expected; }

static void hit_and_look(set_t expected) {
    for (int i = 0; i < 3; i++) {
        hit();
        hits++;
        bad += wrong(expected);
    }
}

static void set_mask(set_t set) {
    sigset_t of_libc;

    sigemptyset(&of_libc);
    for (int sig = 1; sig < 32; sig++)
        if (set & bit(sig)) sigaddset(&of_libc, sig);
    pthread_sigmask(SIG_SETMASK, &of_libc, NULL);
}

static set_t kept; /* what the threads block that keep it */

static void on_chld(int sig) {
    (void)sig;
    hit_and_look(kept | bit(SIGCHLD));
}

static void *in_new_thread(void *unused) {
    (void)unused;
    hit_and_look(kept);
    return NULL;
}

static void make_thread(void) {
    pthread_t made;

    if (pthread_create(&made, NULL, in_new_thread, NULL) != 0) exit(1);
    pthread_join(made, NULL);
}

static void make_child(void) {
    long found = 0;
    int status;
    pid_t child = fork();

    if (child == 0) {
        for (int i = 0; i < 3; i++) {
            hit();
            found |= wrong(kept);
        }
        _exit((int)found);
    }
    waitpid(child, &status, 0);
    bad += status != 0;
}

static long rounds;

static void *keep_mask(void *unused) {
    sigset_t all;
    set_t blocked;

    (void)unused;
    sigfillset(&all);
    for (long i = 0; i < rounds; i++) {
        hit_and_look(kept);
        pthread_sigmask(SIG_SETMASK, &all, NULL);
        blocked = blocked_now();
        hit_and_look(blocked);
        set_mask(kept);
        hit_and_look(kept);
        if (i % 10 == 2) pthread_kill(pthread_self(), SIGCHLD);
        if (i % 10 == 5) make_thread();
        if (i % 10 == 8) make_child();
    }
    return NULL;
}

static void keep_all(void) {
    pthread_t ids[threads];
    struct sigaction action = {.sa_handler = on_chld, .sa_flags = SA_RESTART};

    sigaction(SIGCHLD, &action, NULL);
    hits = bad = 0;
    kept = blocked_now();
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, keep_mask, NULL);
    for (long i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    signal(SIGCHLD, SIG_DFL);
    printf("keep %ld hits %ld bad %ld\n", rounds, (long)hits, (long)bad);
}

static volatile int stop;

static void *hit_blocked(void *unused) {
    sigset_t all;

    (void)unused;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!stop) hit();
    return NULL;
}

static atomic_long hits_of_other;

static void *hit_blocked_and_count(void *unused) {
    sigset_t all;

    (void)unused;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!stop) {
        hit();
        hits_of_other++;
    }
    return NULL;
}

static void on_usr2(int sig) {
    (void)sig;
    hit();
    hits++;
}

static void stay_open(void) {
    struct sigaction action = {.sa_handler = on_usr2};
    sigset_t all, before;
    pthread_t other;

    sigfillset(&all);
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR2, &action, NULL);
    hits = bad = hits_of_other = stop = 0;
    for (long i = 0; i < 2 * rounds; i++) {
        if (i == rounds) pthread_create(&other, NULL, hit_blocked_and_count, NULL);
        sigprocmask(SIG_BLOCK, &all, &before);
        hit();
        hits++;
        sigprocmask(SIG_SETMASK, &before, NULL);
        hit_and_look(0);
        if (i % 8 == 0) raise(SIGUSR2);
        hit_and_look(0);
    }
    stop = 1;
    pthread_join(other, NULL);
    printf("open %ld hits %ld bad %ld\n", rounds, hits + hits_of_other, (long)bad);
}

/* Asked of the kernel, whose struct begins with the handler. */
static int catches_traps(void) {
    unsigned long action[4] = {0};

    syscall(SYS_rt_sigaction, SIGTRAP, NULL, action, sizeof(set_t));
    return action[0] > 1;
}

static void fork_all(void) {
    long caught = 0;
    int status;
    pthread_t other;

    stop = 0;
    pthread_create(&other, NULL, hit_blocked, NULL);
    for (long i = 0; i < rounds; i++) {
        const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

        if (child == 0) _exit(catches_traps());
        waitpid(child, &status, 0);
        caught += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    }
    stop = 1;
    pthread_join(other, NULL);
    printf("forks %ld caught %ld\n", rounds, caught);
}

static void block_later(void) {
    long open = 0, caught = 0;

    for (long i = 0; i < rounds; i++) {
        set_mask(bit(SIGTRAP));
        hit();
        open += blocked_now() == 0;
        for (int j = 1; j < 20; j++) hit();
        caught += catches_traps();
        set_mask(0);
    }
    printf("later %ld hits %ld open %ld caught %ld\n", rounds, 20 * rounds, open, caught);
}

int main(int argc, char **argv) {
    char line[64], what[16];

    (void)argv;
    if (argc == 1) set_mask(bit(SIGTRAP) | bit(SIGUSR1));
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        rounds = 0;
        sscanf(line, "%15s %ld", what, &rounds);
        if (strcmp(what, "forks") == 0)
            fork_all();
        else if (strcmp(what, "later") == 0)
            block_later();
        else if (strcmp(what, "open") == 0)
            stay_open();
        else
            keep_all();
        fflush(stdout);
    }
    return 0;
}
