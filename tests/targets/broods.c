/*
 * broods: threads that fork, each child after the other, all at once, on processors that others keep busy: a fork is
 * half done for long.
 *
 * usage: broods THREADS BUSY
 *
 * BUSY more threads map and unmap memory.
 * Each child calls do_work some times and leaves with status 0 if it was right. Prints "ready PID", and for each line
 * on standard input "children N bad M" once each thread has made another child; M of them did not leave so. At the end
 * of its input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { calls = 20, most_threads = 64 };

static volatile int through;
static volatile long made[most_threads], bad[most_threads];

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return 3 * n + 1;
}

static void *make_children(void *arg) {
    long me = (long)arg;

    while (!through) {
        int status = -1;
        pid_t child = fork();

        if (child < 0) exit(4);
        if (child == 0) {
            for (long n = 0; n < calls; n++)
                if (do_work(n) != 3 * n + 1) _exit(1);
            _exit(0);
        }
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
        if (status != 0) {
            fprintf(stderr, "child %d ended with status 0x%x\n", child, status);
            bad[me]++;
        }
        made[me]++;
    }
    return NULL;
}

static void *be_busy(void *arg) {
    const size_t size = 1 << 16;

    while (!through) {
        char *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (room == MAP_FAILED) exit(5);
        memset(room, 1, size);
        munmap(room, size);
    }
    return arg;
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 4;
    long busy = argc > 2 ? atol(argv[2]) : 0;
    char line[64];
    pthread_t ids[most_threads];

    if (threads < 1 || busy < 0 || threads + busy > most_threads) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (long i = 0; i < threads + busy; i++)
        if (pthread_create(&ids[i], NULL, i < threads ? make_children : be_busy, (void *)i) != 0) return 3;
    printf("ready %d\n", getpid());
    while (fgets(line, sizeof line, stdin)) {
        long children = 0, died = 0;

        for (long i = 0; i < threads; i++) {
            const long before = made[i];

            while (made[i] == before) sched_yield();
            children += made[i];
            died += bad[i];
        }
        printf("children %ld bad %ld\n", children, died);
    }
    through = 1;
    for (long i = 0; i < threads + busy; i++) pthread_join(ids[i], NULL);
    return 0;
}
