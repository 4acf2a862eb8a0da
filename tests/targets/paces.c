/*
 * paces: threads that call pace(i, low, against) with i counting up in each, while signals come whose handler calls
 * ticked(n), n counting up in all. It checks what pace gives back.
 *
 *     paces THREADS [MICROSECONDS]    between two signals; 0: there are none
 *
 * Orders, a line each:
 *     work N     each of the threads calls pace N times, from 0 on: "did PACES TICKS WRONG", of all so far
 *     churn N    N threads one after the other, each of which calls pace 20 times: likewise
 *     child N    a child of fork calls pace N times, and ends: "child STATUS"
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { most = 64, in_churn = 20 };

static atomic_long paces, ticks, wrong;
__thread long own_paces; // that this thread has begun

__attribute__((noinline)) long pace(long i, unsigned short low, int against) {
    __asm__ volatile("" : "+r"(i));
    return i * 3 + low - against;
}

__attribute__((noinline)) long ticked(long n) {
    __asm__ volatile("" : "+r"(n));
    return n * 5 + 1;
}

static void on_tick(int signal) {
    (void)signal;
    const long n = atomic_fetch_add(&ticks, 1);
    if (ticked(n) != n * 5 + 1) wrong++;
}

static void go(long count) {
    for (long i = 0; i < count; i++) {
        own_paces++;
        if (pace(i, (unsigned short)(i & 0xff), (int)-i) != i * 4 + (i & 0xff)) wrong++;
    }
    paces += count;
}

static void *walk(void *count) {
    go((long)count);
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
        const struct itimerval timer = {{0, every}, {0, every}}, none = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &timer, 0);
        if (sscanf(line, "work %ld", &count) == 1) {
            pthread_t all[most];
            for (int i = 0; i < threads; i++) pthread_create(&all[i], 0, walk, (void *)count);
            for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
        } else if (sscanf(line, "churn %ld", &count) == 1) {
            for (long i = 0; i < count; i++) {
                pthread_t one;
                pthread_create(&one, 0, walk, (void *)(long)in_churn);
                pthread_join(one, 0);
            }
        } else if (sscanf(line, "child %ld", &count) == 1) {
            setitimer(ITIMER_REAL, &none, 0);
            int status = -1;
            const pid_t child = fork();
            if (child == 0) {
                go(count);
                _exit(wrong != 0);
            }
            waitpid(child, &status, 0);
            printf("child %d\n", status);
            fflush(stdout);
            continue;
        }
        setitimer(ITIMER_REAL, &none, 0);
        printf("did %ld %ld %ld\n", (long)paces, (long)ticks, (long)wrong);
        fflush(stdout);
    }
    return wrong != 0;
}
