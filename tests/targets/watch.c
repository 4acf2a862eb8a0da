// Variables that are written and read a known number of times, by the main thread and others.
//
// watch       Prints "ready PID"; for each line of its input: `write N`, `threads T N` (each writes the counter N times
//             and its own variable N times), `touch` (one write or read of each kind), `busy T` (T threads write:
//             "busy T" when all of them do; until the next line has come and each has written once more: "wrote N", and
//             "own TID N" of each thread), `child WAY N` (a child by fork, vfork, clone in the same memory,
//             posix_spawn or exec, which writes the counter N times: "child PID STATUS"), `borrow` (a child by vfork
//             that writes the counter until the next line: "child PID STATUS"), `sleeper` (a child that does nothing:
//             "child PID"); then "done".
// watch N     Writes N times and leaves.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__clang__)
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noipa))
#endif

volatile int counter = 5;
static volatile unsigned char flag;
volatile struct {
    int first;
    long limit;
    short table[4];
} cfg;
volatile double ratio = 0.5;
static __thread volatile long own;
volatile struct { long all[6]; } large;
volatile char *pointed = "one";

ALONE void bump(void) { counter = counter + 1; }
ALONE int look(void) { return counter; }
ALONE void same(void) { counter = counter; }

static void *worker(void *argument) {
    for (long i = 0; i < (long)argument; i++) {
        bump();
        own = own + 1;
    }
    return NULL;
}

enum { most_busy = 64 };

static volatile int resting;
static volatile long turns[most_busy]; /* of each busy thread */

static void *busy_worker(void *number) {
    long before = own;
    while (!resting) {
        bump();
        own = own + 1;
        turns[(long)number]++;
    }
    printf("own %ld %ld\n", (long)syscall(SYS_gettid), own);
    return (void *)(own - before);
}

/* Until each of them has written a whole turn since. */
static void wait_for_a_turn_of_each(long threads) {
    for (long i = 0; i < threads; i++)
        for (long before = turns[i]; turns[i] < before + 2;) sched_yield();
}

/* Until the next line. */
static void be_busy(long threads) {
    pthread_t ids[most_busy];
    char line[64];
    long total = 0;
    resting = 0;
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, busy_worker, (void *)i);
    wait_for_a_turn_of_each(threads);
    printf("busy %ld\n", threads);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) exit(5);
    wait_for_a_turn_of_each(threads);
    resting = 1;
    for (long i = 0; i < threads; i++) {
        void *wrote;
        pthread_join(ids[i], &wrote);
        total += (long)wrote;
    }
    printf("wrote %ld\n", total);
}

extern char **environ;
static char self[4096];

static int child_main(void *count) {
    worker(count);
    return 0;
}

static pid_t start_child(const char *way, long count) {
    char number[32];
    char *arguments[] = {self, number, NULL};
    pid_t child = -1;
    snprintf(number, sizeof number, "%ld", count);
    if (strcmp(way, "clone") == 0) {
        static char stack[1 << 16] __attribute__((aligned(16)));
        return clone(child_main, stack + sizeof stack, CLONE_VM | SIGCHLD, (void *)count);
    }
    if (strcmp(way, "spawn") == 0) return posix_spawn(&child, self, NULL, NULL, arguments, environ) ? -1 : child;
    child = strcmp(way, "vfork") == 0 ? vfork() : fork();
    if (child != 0) return child;
    if (strcmp(way, "exec") == 0) {
        execve(self, arguments, environ);
        _exit(8);
    }
    worker((void *)count);
    _exit(0);
}

/* Its parent waits in vfork meanwhile, and reads the line then. */
static void borrow(void) {
    struct pollfd input = {0, POLLIN, 0};
    char line[64];
    int status = -1;
    pid_t child = vfork();
    if (child == 0) {
        while (poll(&input, 1, 0) == 0) bump();
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (!fgets(line, sizeof line, stdin)) exit(5);
    printf("child %d %d\n", child, status);
}

static void touch(void) {
    flag = 7;
    cfg.first = 1;
    cfg.limit = -3;
    cfg.table[2] = 9;
    ratio = 1.5;
    own = 4;
    large.all[3] = 8;
    pointed = "two";
    (void)look();
    same();
}

int main(int argc, char **argv) {
    char line[64], way[16];
    long threads, count;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    if (argc > 1) {
        worker((void *)atol(argv[1]));
        return 0;
    }
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "threads %ld %ld", &threads, &count) == 2) {
            pthread_t ids[64];
            for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, worker, (void *)count);
            for (long i = 0; i < threads; i++) pthread_join(ids[i], NULL);
        } else if (sscanf(line, "write %ld", &count) == 1) {
            worker((void *)count);
        } else if (sscanf(line, "busy %ld", &threads) == 1) {
            be_busy(threads);
        } else if (sscanf(line, "child %15s %ld", way, &count) == 2) {
            int status = -1;
            pid_t child = start_child(way, count);
            waitpid(child, &status, 0);
            printf("child %d %d\n", child, status);
        } else if (strcmp(line, "borrow\n") == 0) {
            borrow();
        } else if (strcmp(line, "sleeper\n") == 0) {
            pid_t child = fork();
            if (child == 0) {
                pause();
                _exit(0);
            }
            printf("child %d\n", child);
        } else {
            touch();
        }
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
