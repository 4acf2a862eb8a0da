/*
 * threads: threads that begin and end in all ways, on request.
 *
 * Prints "ready PID" and obeys lines on standard input, `WHAT N`:
 *
 *     short N    N threads, eight at a time, each calling do_work twice            "calls 2*N"
 *     exit N     N threads that end inside leave_here (pthread_exit)               "calls N"
 *     leader N   main ends; four threads call do_work N times each, and the last of them goes on obeying  "calls 4*N"
 *     mortal N   N threads and main call do_work until the next line; main ends at SIGUSR1, and another goes on obeying
 *                "spinning N", then "calls M"
 *     spin N     N threads call do_work until the next line                        "spinning N", then "calls M"
 *     blocked N  N threads sleep; main blocks all signals and calls do_work for ever      "spinning N"
 *     vfork N    spin N, while main waits in vfork for a child that runs until the next line
 *     exec N     a thread that is not the leader becomes `threads`, while N others call do_work
 *     segv N     N calls of do_work, and a write through a null pointer inside crash_here
 *     abort N    N calls of do_work, and abort() inside crash_here
 *
 * "calls" are all calls of do_work (of leave_here with exit) since the line. At the end of its input it leaves with
 * status 0.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { most_threads = 64 };

static volatile int stop;
static char self[4096];
static pthread_barrier_t started;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

__attribute__((noinline)) void leave_here(long n) {
    __asm__ volatile("" ::: "memory");
    if (n >= 0) pthread_exit(NULL);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void crash_here(int how) {
    if (how) abort();
    *(volatile int *)(long)(how * 8) = 1;
}

static void say(const char *what, long n) {
    printf("%s %ld\n", what, n);
    fflush(stdout);
}

static void *twice(void *arg) {
    do_work(1);
    do_work(2);
    return arg;
}

static void *leave(void *arg) {
    leave_here((long)arg);
    return arg;
}

static void in_eights(void *(*body)(void *), long count) {
    pthread_t id[8];

    for (long done = 0; done < count; done += 8) {
        long now = count - done < 8 ? count - done : 8;

        for (long i = 0; i < now; i++)
            if (pthread_create(&id[i], NULL, body, (void *)i)) exit(4);
        for (long i = 0; i < now; i++) pthread_join(id[i], NULL);
    }
}

static void *spin(void *arg) {
    long calls = 0;

    (void)arg;
    pthread_barrier_wait(&started);
    do { /* once at least: stopped right behind the barrier, it may find that it is to end */
        if (do_work(calls) == calls * 3 + 1) calls++;
    } while (!stop);
    return (void *)calls;
}

static void wait_in_vfork(void) {
    pid_t child = vfork();

    if (child == 0) {
        struct pollfd input = {0, POLLIN, 0};

        while (poll(&input, 1, 0) == 0) continue;
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child) exit(6);
}

static void spin_until_told(long count, int in_vfork) {
    pthread_t id[most_threads];
    char line[64];
    long calls = 0;
    void *part;

    stop = 0;
    pthread_barrier_init(&started, NULL, (unsigned)count + 1);
    for (long i = 0; i < count; i++) pthread_create(&id[i], NULL, spin, NULL);
    pthread_barrier_wait(&started);
    say("spinning", count);
    if (in_vfork) wait_in_vfork();
    if (!fgets(line, sizeof(line), stdin)) exit(5);
    stop = 1;
    for (long i = 0; i < count; i++) {
        pthread_join(id[i], &part);
        calls += (long)part;
    }
    say("calls", calls);
}

static void *sleep_on(void *arg) {
    while (1) pause();
    return arg;
}

static void spin_without_signals(long count) {
    pthread_t id;
    sigset_t all;

    for (long i = 0; i < count; i++) pthread_create(&id, NULL, sleep_on, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    say("spinning", count);
    for (long n = 0;; n++) do_work(n);
}

static void *become(void *arg) {
    pthread_barrier_wait(&started);
    execl(self, self, (char *)NULL);
    return arg;
}

static void exec_elsewhere(long count) {
    pthread_t id;

    stop = 0;
    pthread_barrier_init(&started, NULL, (unsigned)count + 1);
    for (long i = 0; i < count; i++) pthread_create(&id, NULL, spin, NULL);
    pthread_create(&id, NULL, become, NULL);
    pthread_join(id, NULL);
}

static void obey(void);

static long orphan_calls;

static void *orphan(void *arg) {
    pthread_barrier_wait(&started);
    for (long i = 0; i < orphan_calls; i++) do_work(i);
    pthread_barrier_wait(&started);
    if (!arg) return NULL;
    say("calls", 4 * orphan_calls);
    obey();
    exit(0);
}

static volatile sig_atomic_t has_to_end;
static long leader_calls, heirs_threads;
static pthread_t leader, spinning[most_threads];

static void on_end(int sig) {
    (void)sig;
    has_to_end = 1;
}

static void *inherit(void *arg) {
    long calls = 0;
    char line[64];
    void *part;

    if (!fgets(line, sizeof(line), stdin)) exit(5);
    stop = 1;
    for (long i = 0; i < heirs_threads; i++) {
        pthread_join(spinning[i], &part);
        calls += (long)part;
    }
    pthread_join(leader, NULL);
    say("calls", calls + leader_calls);
    obey();
    exit(0);
    return arg;
}

/* The caller calls do_work, too, until it ends; another thread takes over. */
static void until_leader_ends(long count) {
    pthread_t id;

    signal(SIGUSR1, on_end);
    leader = pthread_self();
    heirs_threads = count;
    pthread_barrier_init(&started, NULL, (unsigned)count + 1);
    for (long i = 0; i < count; i++) pthread_create(&spinning[i], NULL, spin, NULL);
    pthread_barrier_wait(&started);
    pthread_create(&id, NULL, inherit, NULL);
    say("spinning", count);
    while (!has_to_end)
        if (do_work(leader_calls) == leader_calls * 3 + 1) leader_calls++;
    pthread_exit(NULL);
}

/* The caller ends; a new thread takes over. */
static void without_leader(long count) {
    pthread_t id;

    orphan_calls = count;
    pthread_barrier_init(&started, NULL, 4);
    for (long i = 0; i < 4; i++) pthread_create(&id, NULL, orphan, (void *)(i == 0 ? 1L : 0L));
    pthread_exit(NULL);
}

static void obey(void) {
    char line[64], what[32];
    long count;

    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "%31s %ld", what, &count) != 2) exit(2);
        if (strcmp(what, "short") == 0) {
            in_eights(twice, count);
            say("calls", 2 * count);
        } else if (strcmp(what, "exit") == 0) {
            in_eights(leave, count);
            say("calls", count);
        } else if (strcmp(what, "spin") == 0) {
            spin_until_told(count, 0);
        } else if (strcmp(what, "blocked") == 0) {
            spin_without_signals(count);
        } else if (strcmp(what, "vfork") == 0) {
            spin_until_told(count, 1);
        } else if (strcmp(what, "leader") == 0) {
            without_leader(count);
        } else if (strcmp(what, "mortal") == 0) {
            until_leader_ends(count);
        } else if (strcmp(what, "exec") == 0) {
            exec_elsewhere(count);
        } else if (strcmp(what, "segv") == 0 || strcmp(what, "abort") == 0) {
            for (long i = 0; i < count; i++) do_work(i);
            crash_here(what[0] == 'a');
        }
    }
}

int main(void) {
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[length > 0 ? length : 0] = 0;
    say("ready", (long)getpid());
    obey();
    return 0;
}
