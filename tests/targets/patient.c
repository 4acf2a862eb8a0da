/*
 * patient MS [other|busy|forks]: sleeps in a system call with a time-out, and knows whether that call was made more
 * than once.
 *
 * Prints "ready PID" and, at `sleep`, sleeps in semtimedop(2) for MS milliseconds, on a semaphore that is never given;
 * with `other` a second thread sleeps in pause(2), with `busy` it runs. With `forks` it blocks SIGTRAP, and begins a
 * child right behind the call, which calls do_work ten times ("child STATUS"). The operation lies in shared memory, and
 * the kernel reads it when the call is made. A helper process obeys the lines: `swap` changes what is to be taken to
 * another semaphore, which has enough (answer "swapped"), so that the call, if it were made now, would return 0 at
 * once; `give` gives what the first call waits for; `run` is answered "ran" when the busy thread has. In the end it
 * prints
 *
 *     woke RESULT ERRNO TAKEN
 *
 * where TAKEN is 1 if the call was made after the swap, and leaves with status 0 when its input has ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

enum { enough = 100 };

static int semaphores, begin[2];
/* Shared with the helper. */
static struct sembuf *take;
static volatile unsigned long *rounds;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

volatile long awake;

static void say(const char *what) {
    puts(what);
    fflush(stdout);
}

static void help(void) {
    struct sembuf give = {0, 1, 0};
    unsigned long before;
    char line[64];

    while (fgets(line, sizeof(line), stdin)) {
        if (strcmp(line, "sleep\n") == 0) {
            if (write(begin[1], line, 1) != 1) _exit(1);
        } else if (strcmp(line, "swap\n") == 0) {
            take->sem_num = 1;
            say("swapped");
        } else if (strcmp(line, "give\n") == 0) {
            semop(semaphores, &give, 1);
        } else if (strcmp(line, "run\n") == 0) {
            before = *rounds;
            while (*rounds < before + 1000) sched_yield();
            say("ran");
        }
    }
    _exit(0);
}

static void *rest(void *arg) {
    for (;;) pause();
    return arg;
}

static void *run(void *arg) {
    for (;;) {
        *rounds += 1;
        sched_yield();
    }
    return arg;
}

static void work_in_child(void) {
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        alarm(60); /* whatever becomes of it */
        for (long n = 0; n < 10; n++)
            if (do_work(n) != n * 3 + 1) _exit(1);
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("child %d\n", status);
}

int main(int argc, char **argv) {
    long milliseconds = argc > 1 ? atol(argv[1]) : 1000;
    struct timespec time_out = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    pthread_t id;
    pid_t helper;
    int result, error;
    char byte;
    const int forks = argc > 2 && strcmp(argv[2], "forks") == 0;
    sigset_t trap;

    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    semaphores = semget(IPC_PRIVATE, 2, 0600);
    take = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pipe(begin) != 0 || semaphores < 0 || take == MAP_FAILED || semctl(semaphores, 1, SETVAL, enough) != 0)
        return 2;
    take->sem_op = -1;
    rounds = (volatile unsigned long *)(take + 1);
    helper = fork();
    if (helper == 0) help();
    if (forks)
        sigprocmask(SIG_BLOCK, &trap, NULL);
    else if (argc > 2)
        pthread_create(&id, NULL, strcmp(argv[2], "busy") == 0 ? run : rest, NULL);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    if (read(begin[0], &byte, 1) != 1) return 2;
    errno = 0;
    result = semtimedop(semaphores, take, 1, &time_out);
    error = result < 0 ? errno : 0;
    if (forks) work_in_child();
    awake = do_work(1);
    printf("woke %d %d %d\n", result, error, enough - semctl(semaphores, 1, GETVAL));
    fflush(stdout);
    while (waitpid(helper, NULL, 0) < 0 && errno == EINTR) continue;
    semctl(semaphores, 0, IPC_RMID);
    return 0;
}
