/*
 * scales: threads that compute with floating point, while signals come whose handler does, too. They check what they
 * are given back, and what they keep in registers meanwhile.
 *
 *     scales THREADS [MICROSECONDS]    between two signals; 0: there are none
 *
 * Orders, a line each:
 *     work N    each of the threads, for i from 0 to N - 1: scaled(i / 2.0, i / 4.0f, i), which gives their sum,
 *               halved(i / 2.0f) and moved({i, -i / 8.0}): "did CALLS TICKS WRONG", of all so far
 */
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { most = 64 };

struct point {
    double x, y;
};

static atomic_long calls, ticks, wrong;

__attribute__((noinline)) double scaled(double x, float f, long i) {
    __asm__ volatile("" : "+r"(i));
    return x + (double)f + (double)i;
}

__attribute__((noinline)) float halved(float f) {
    __asm__ volatile("" : : "m"(f) : "memory");
    return f / 2;
}

__attribute__((noinline)) struct point moved(struct point at) {
    __asm__ volatile("" : : : "memory");
    return (struct point){at.x + 1, at.y - 1};
}

static void on_tick(int signal) {
    (void)signal;
    const long n = atomic_fetch_add(&ticks, 1);
    if (halved((float)(n & 0xffff)) != (float)(n & 0xffff) / 2) wrong++;
}

/* As the thread rounds now. */
__attribute__((noinline)) static double third(void) {
    volatile double one = 1, three = 3;
    return one / three;
}

static void *walk(void *count) {
    const long end = (long)count;
    const double near = third();
    fesetround(FE_UPWARD);
    const double up = third();
    if (up <= near) wrong++;
    double sum = 0, expected = 0;
    for (long i = 0; i < end; i++) {
        const double x = (double)i / 2;
        const float f = (float)i / 4;
        if (scaled(x, f, i) != x + (double)f + (double)i) wrong++;
        if (halved((float)i / 2) != (float)i / 4) wrong++;
        const struct point to = moved((struct point){(double)i, -(double)i / 8});
        if (to.x != (double)i + 1 || to.y != -(double)i / 8 - 1) wrong++;
        sum += to.x;
        if (third() != up) wrong++;
    }
    expected = (double)end * (double)(end + 1) / 2;
    if (sum != expected) wrong++;
    calls += end;
    return 0;
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1, every = argc > 2 ? atoi(argv[2]) : 0;
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    printf("ready %d\n", getpid());
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        long count = 0;
        if (sscanf(line, "work %ld", &count) != 1) return 2;
        const struct itimerval timer = {{0, every}, {0, every}}, none = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &timer, 0);
        pthread_t all[most];
        for (int i = 0; i < threads; i++) pthread_create(&all[i], 0, walk, (void *)count);
        for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
        setitimer(ITIMER_REAL, &none, 0);
        printf("did %ld %ld %ld\n", calls, ticks, wrong);
        fflush(stdout);
    }
    return 0;
}
