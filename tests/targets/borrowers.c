/*
 * borrowers [beside]: a process in whose memory another one runs.
 *
 * Prints "ready PID". At "vfork" or "clone" it makes such a child, in that way (clone: one that goes on beside it),
 * which says "borrowing PID" and calls do_work until one more line comes; a child born by vfork executes /bin/true
 * then. When it has ended the parent says "ended STATUS calls N own M", with the calls of do_work that the child has
 * made, and all of its own. The child of "doze" goes on beside it, too, and sleeps in epoll_wait(2) until that line
 * comes; its status is 0 where nothing else has ended the call. With "beside" a thread of the parent's calls do_work
 * now and then. At "leave" it makes a child as for "clone", and ends at once.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long borrowed, own;
static char stack[1 << 16] __attribute__((aligned(64)));

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

/* No stdio: its locks are the parent's. */
static void borrow(void) {
    char text[64];
    int size = snprintf(text, sizeof(text), "borrowing %d\n", (int)getpid());
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};

    if (write(STDOUT_FILENO, text, (size_t)size) != size) _exit(8);
    do {
        for (long i = 0; i < 10; i++, borrowed++)
            if (do_work(i) != i * 3 + 1) _exit(9);
    } while (poll(&input, 1, 0) == 0);
    while (read(STDIN_FILENO, text, 1) == 1 && text[0] != '\n') continue;
}

static int go_beside(void *arg) {
    (void)arg;
    borrow();
    _exit(0);
}

static int doze_beside(void *arg) {
    struct epoll_event event = {.events = EPOLLIN};
    char text[64];
    int epoll = epoll_create1(0);
    int size = snprintf(text, sizeof(text), "borrowing %d\n", (int)getpid());

    (void)arg;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event) != 0) _exit(7);
    if (write(STDOUT_FILENO, text, (size_t)size) != size) _exit(8);
    if (epoll_wait(epoll, &event, 1, -1) != 1) _exit(9);
    while (read(STDIN_FILENO, text, 1) == 1 && text[0] != '\n') continue;
    _exit(0);
}

static void *work(void *arg) {
    for (;; own++) {
        if (do_work(own) != own * 3 + 1) abort();
        usleep(200);
    }
    return arg;
}

int main(int argc, char **argv) {
    char line[64];
    pthread_t thread;

    setvbuf(stdin, NULL, _IONBF, 0);
    if (argc > 1 && strcmp(argv[1], "beside") == 0) pthread_create(&thread, NULL, work, NULL);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        pid_t child;
        int status = -1;

        borrowed = 0;
        if (strcmp(line, "vfork\n") == 0) {
            child = vfork();
            if (child == 0) {
                borrow();
                execl("/bin/true", "true", NULL);
                _exit(7);
            }
        } else {
            child = clone(strcmp(line, "doze\n") == 0 ? doze_beside : go_beside, stack + sizeof(stack),
                          CLONE_VM | SIGCHLD, NULL);
        }
        if (strcmp(line, "leave\n") == 0) _exit(0);
        waitpid(child, &status, 0);
        printf("ended %d calls %ld own %ld\n", status, borrowed, own);
        fflush(stdout);
    }
    return 0;
}
