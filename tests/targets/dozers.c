/*
 * dozers THREADS MS: sleeps again and again in epoll_wait(2) for MS milliseconds, with all of its threads but one,
 * which sleeps in epoll_pwait(2) under a signal mask of its own.
 *
 * Prints "ready PID". A helper process, which is nobody's business, answers a line by "awake" when each of those
 * threads has woken up once more. It leaves with status 0 when its input has ended.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { most_threads = 256 };

static struct {
    atomic_long rounds[most_threads];
    atomic_int over;
} * shared; /* with the helper */
static int milliseconds;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static void *doze(void *arg) {
    atomic_long *own = arg;
    struct epoll_event event;
    int epoll = epoll_create1(0);

    for (;;) {
        syscall(SYS_epoll_wait, epoll, &event, 1, milliseconds);
        if (do_work(1) != 4) exit(3);
        if (shared->over) exit(0);
        ++*own;
    }
    return NULL;
}

static void *doze_masked(void *arg) {
    struct epoll_event event;
    int epoll = epoll_create1(0);
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    for (;;) epoll_pwait(epoll, &event, 1, 1000000, &mask);
    return arg;
}

static void answer(long threads) {
    long before[most_threads];
    char line[64];

    while (fgets(line, sizeof line, stdin)) {
        for (long i = 0; i < threads; i++) before[i] = shared->rounds[i];
        for (long i = 0; i < threads; i++)
            while (shared->rounds[i] == before[i]) usleep(1000);
        puts("awake");
        fflush(stdout);
    }
    shared->over = 1;
    _exit(0);
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 8;
    pthread_t id;

    if (threads < 1 || threads > most_threads) return 2;
    milliseconds = argc > 2 ? atoi(argv[2]) : 20;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    if (fork() == 0) answer(threads);
    if (pthread_create(&id, NULL, doze_masked, NULL) != 0) return 2;
    for (long i = 1; i < threads; i++)
        if (pthread_create(&id, NULL, doze, &shared->rounds[i]) != 0) return 2;
    doze(&shared->rounds[0]);
    return 0;
}
