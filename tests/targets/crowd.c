/*
 * crowd THREADS: so many threads sleep in pause(2), and the first one waits for lines on standard input.
 *
 * Prints "ready PID" when all are there, answers each line with "do_work N", N being what do_work returned, and leaves
 * with status 0 at the end of its input.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3;
}

static void *sleep_on(void *unused) {
    (void)unused;
    for (;;) pause();
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 1;
    pthread_attr_t small;
    pthread_t id;
    char line[64];

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    for (long i = 1; i < threads; i++)
        if (pthread_create(&id, &small, sleep_on, NULL) != 0) return 2;
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        printf("do_work %ld\n", do_work(threads));
        fflush(stdout);
    }
    _exit(0);
}
