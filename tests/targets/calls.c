/*
 * calls THREADS CALLS: every thread calls do_work CALLS times, for each line.
 *
 * Prints "ready PID", waits for a line on standard input, works, prints what is true ("do_work N sum S"), and waits for
 * the next line; at the end of its input it leaves with status 0. A wrong result of do_work ends it with status 3.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long calls_each;

__attribute__((noinline)) long do_work(long n, const char *name) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + name[0];
}

static __attribute__((noinline)) void *worker(void *arg) {
    long sum = 0;

    for (long i = 0; i < calls_each; i++) {
        long got = do_work(i, arg);

        if (got != i * 3 + *(const char *)arg) exit(3);
        sum += got;
    }
    return (void *)sum;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t id[256];
    char line[64];

    calls_each = argc > 2 ? atol(argv[2]) : 1000;
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        long sum = 0;
        void *part;

        for (int i = 1; i < threads; i++)
            if (pthread_create(&id[i], NULL, worker, "beta")) return 4;
        sum += (long)worker("alpha");
        for (int i = 1; i < threads; i++) {
            pthread_join(id[i], &part);
            sum += (long)part;
        }
        printf("do_work %ld sum %ld\n", calls_each * threads, sum);
        fflush(stdout);
    }
    return 0;
}
