/*
 * execs THREADS: a process that becomes itself again and again, each time from a thread that is not its leader, while
 * THREADS others call do_work.
 * execs alone: the same by a process of one thread, which calls do_work itself.
 *
 * Prints "ready PID" at its first start and goes on until a line comes; then it says "done", waits for the end of its
 * input, and leaves with status 0.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static void *work(void *arg) {
    for (long i = 0;; i++)
        if (do_work(i) != i * 3 + 1) exit(3);
    return arg;
}

static char **arguments;

static void *become(void *arg) {
    execl("/proc/self/exe", arguments[0], arguments[1], "again", (char *)NULL);
    return arg;
}

static int become_alone(char **argv, int again) {
    struct pollfd input = {0, POLLIN, 0};
    char line[64];

    if (!again) printf("ready %d\n", (int)getpid());
    fflush(stdout);
    if (poll(&input, 1, 0) == 0) {
        do_work(1);
        execl("/proc/self/exe", argv[0], argv[1], "again", (char *)NULL);
        return 5;
    }
    printf("done\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) continue;
    return 0;
}

int main(int argc, char **argv) {
    struct pollfd input = {0, POLLIN, 0};
    pthread_t id;
    char line[64];

    if (argc < 2) return 2;
    if (strcmp(argv[1], "alone") == 0) return become_alone(argv, argc > 2);
    arguments = argv;
    if (argc == 2) {
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
    }
    if (poll(&input, 1, 0) != 0) {
        printf("done\n");
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) continue;
        return 0;
    }
    for (int i = 0; i < atoi(argv[1]); i++)
        if (pthread_create(&id, NULL, work, NULL)) return 4;
    if (pthread_create(&id, NULL, become, NULL)) return 4;
    pthread_join(id, NULL);
    return 5;
}
