// Variables that are written and read a known number of times, by the main thread and others.
//
// watch       Prints "ready PID"; for each line of its input: `write N`, `threads T N` (each writes the counter N times
//             and its own variable N times), `touch` (one write or read of each kind), then "done".
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(void) {
    char line[64];
    long threads, count;
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "threads %ld %ld", &threads, &count) == 2) {
            pthread_t ids[64];
            for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, worker, (void *)count);
            for (long i = 0; i < threads; i++) pthread_join(ids[i], NULL);
        } else if (sscanf(line, "write %ld", &count) == 1) {
            worker((void *)count);
        } else if (strcmp(line, "fork\n") == 0) {
            pid_t child = fork();
            if (child == 0) {
                bump();
                _exit(0);
            }
            int status = -1;
            waitpid(child, &status, 0);
            printf("child %d\n", status);
        } else {
            touch();
        }
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
