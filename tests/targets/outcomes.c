/*
 * outcomes: sleeps in epoll_pwait(2), again and again, and counts what comes of it. SIGUSR1 is open nowhere but in that
 * call: each time that its handler runs, one call has failed with EINTR.
 *
 * Prints "ready PID". A helper process obeys the lines. `send N`: N times it sends SIGUSR1, and waits until the handler
 * has run; just before it sends SIGWINCH, which the program ignores, so that the one comes while ktrace is busy with
 * the other. `rest`: it does nothing. Each is answered by "sent". In the end, when the input has ended, it prints
 *
 *     handled H failed F over O
 *
 * how often the handler has run, how many calls have failed with EINTR, and how many were over by their time-out, which
 * is of ten minutes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    atomic_long handled, failed, over;
    atomic_int ends;
} * shared; /* with the helper */

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

volatile long awake;

static void on_signal(int signal) {
    (void)signal;
    shared->handled++;
}

/* How far the one signal is behind the other. */
static void pass_some_time(long how_much) {
    for (volatile long i = 0; i < how_much; i++) continue;
}

static void send(pid_t to, long times) {
    for (long i = 0; i < times; i++) {
        const long before = shared->handled;

        for (int k = 0; k < 2; k++) {
            kill(to, SIGWINCH);
            pass_some_time(i * 977 % 20000);
        }
        kill(to, SIGUSR1);
        while (shared->handled == before && getppid() == to) sched_yield();
    }
}

static void help(pid_t program) {
    char line[64];

    while (fgets(line, sizeof(line), stdin)) {
        if (strncmp(line, "send ", 5) == 0) send(program, atol(line + 5));
        puts("sent");
        fflush(stdout);
    }
    shared->ends = 1;
    kill(program, SIGUSR1);
    _exit(0);
}

int main(void) {
    const pid_t self = getpid();
    struct sigaction action;
    struct epoll_event event;
    sigset_t blocked, open;
    int epoll = epoll_create1(0);
    pid_t helper;

    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || epoll < 0) return 2;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &open);
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    helper = fork();
    if (helper == 0) help(self);
    printf("ready %d\n", (int)self);
    fflush(stdout);
    while (!shared->ends) {
        const int result = epoll_pwait(epoll, &event, 1, 600000, &open);

        if (result < 0 && errno == EINTR)
            shared->failed++;
        else if (result == 0)
            shared->over++;
        else
            return 3;
        awake = do_work(1);
    }
    waitpid(helper, NULL, 0);
    printf("handled %ld failed %ld over %ld\n", shared->handled, shared->failed, shared->over);
    return 0;
}
