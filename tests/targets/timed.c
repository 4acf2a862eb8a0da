/*
 * timed: calls that measure themselves, on a processor that others keep busy.
 *
 * usage: timed BUSY
 *
 * All its threads run on one processor, the first that it may use. BUSY of them never pause and call nothing. Prints
 * "ready PID" and obeys lines on standard input, `WHAT N`:
 *
 *     work N     calls work N times
 *     all N      N threads call touch once each, and end when all have done so
 *     short N    N threads call touch once each, one after the other
 *     pass N     calls pass once, which sends a byte to another thread and waits for its answer, N times
 *
 * with "calls N" when done. work returns the nanoseconds that it took by its own clock, without its calls of tick. At
 * the end of its input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ticks = 8, piece_ns = 300000 };

static pthread_barrier_t done;
static int there[2], back[2]; /* pipes */

static long now_ns(void) {
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

__attribute__((noinline)) void tick(void) { __asm__ volatile("" ::: "memory"); }

__attribute__((noinline)) long work(void) {
    long own = 0;

    for (int i = 0; i < ticks; i++) {
        long start = now_ns(), end = start;

        while (end - start < piece_ns) end = now_ns();
        own += end - start;
        tick();
    }
    return own;
}

__attribute__((noinline)) long touch(long n) {
    __asm__ volatile("" ::: "memory");
    return n + 1;
}

__attribute__((noinline)) long pass(long times) {
    char byte = 0;

    for (long i = 0; i < times; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) exit(5);
    return times;
}

static void *answer(void *arg) {
    char byte;

    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) continue;
    return arg;
}

static void *burn(void *arg) {
    for (;;) __asm__ volatile("" ::: "memory");
    return arg;
}

static void *touch_once(void *arg) {
    touch((long)arg);
    return arg;
}

static void *touch_and_wait(void *arg) {
    touch((long)arg);
    pthread_barrier_wait(&done);
    return arg;
}

static pthread_t start(void *(*body)(void *), long n) {
    pthread_attr_t small;
    pthread_t id;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    if (pthread_create(&id, &small, body, (void *)n)) exit(4);
    return id;
}

static void all(long count) {
    pthread_t *id = calloc((size_t)count, sizeof(*id));

    pthread_barrier_init(&done, NULL, (unsigned)count);
    for (long i = 0; i < count; i++) id[i] = start(touch_and_wait, i);
    for (long i = 0; i < count; i++) pthread_join(id[i], NULL);
    free(id);
}

static void stay_on_one_processor(void) {
    cpu_set_t may, one;
    int cpu = 0;

    sched_getaffinity(0, sizeof(may), &may);
    while (!CPU_ISSET(cpu, &may)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv) {
    char line[64], what[32];
    long count;

    stay_on_one_processor();
    for (long busy = argc > 1 ? atol(argv[1]) : 0; busy > 0; busy--) start(burn, busy);
    if (pipe(there) || pipe(back)) return 3;
    start(answer, 0);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "%31s %ld", what, &count) != 2) return 2;
        if (strcmp(what, "work") == 0)
            for (long i = 0; i < count; i++) work();
        else if (strcmp(what, "all") == 0)
            all(count);
        else if (strcmp(what, "short") == 0)
            for (long i = 0; i < count; i++) pthread_join(start(touch_once, i), NULL);
        else if (strcmp(what, "pass") == 0)
            pass(count);
        printf("calls %ld\n", count);
        fflush(stdout);
    }
    return 0;
}
