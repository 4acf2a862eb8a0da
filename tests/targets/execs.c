/*
 * execs THREADS TIMES: a process that becomes itself again and again, each time from a thread that is not its leader,
 * while THREADS others call do_work.
 *
 * Prints "ready PID" at its first start and "done" after TIMES; then waits for the end of its input, and leaves with
 * status 0.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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
    char times[32];

    snprintf(times, sizeof(times), "%d", atoi(arguments[2]) - 1);
    execl("/proc/self/exe", arguments[0], arguments[1], times, "again", (char *)NULL);
    return arg;
}

int main(int argc, char **argv) {
    pthread_t id;
    char line[64];

    if (argc < 3) return 2;
    arguments = argv;
    if (argc == 3) {
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
    }
    if (atoi(argv[2]) == 0) {
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
