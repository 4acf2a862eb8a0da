/*
 * siblings: a process that makes children for its own parent (CLONE_PARENT).
 *
 * Prints "ready PID": the maker's, a child of this program. At "WAY N" the maker makes N of them, one after the other:
 * "share", in its own memory, or "copy", with a copy of it. Each calls do_work once, and so does the maker before each;
 * "calls C own M": all calls of do_work, and the maker's alone. At the end of its input the maker ends, and then this
 * program does: with status 0 where the maker and all children ended so.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[1 << 16] __attribute__((aligned(64)));
static volatile int *done; /* shared with all of them */

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static int be_child(void *arg) {
    int right = do_work(7) == 22;

    (void)arg;
    *done = 1;
    return !right;
}

static void make_one(int shares) {
    *done = 0;
    if (shares) {
        if (clone(be_child, stack + sizeof(stack), CLONE_VM | CLONE_PARENT | SIGCHLD, NULL) < 0) _exit(5);
    } else {
        long child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);

        if (child < 0) _exit(5);
        if (child == 0) _exit(be_child(NULL));
    }
    while (!*done) sched_yield();
}

static int be_maker(void) {
    char line[64], way[32];
    long times;

    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "%31s %ld", way, &times) != 2) return 2;
        for (long i = 0; i < times; i++) {
            if (do_work(i) != i * 3 + 1) return 9;
            make_one(strcmp(way, "share") == 0);
        }
        printf("calls %ld own %ld\n", 2 * times, times);
        fflush(stdout);
    }
    return 0;
}

int main(void) {
    int status, bad = 0;

    done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (done == MAP_FAILED) return 3;
    if (fork() == 0) return be_maker();
    while (wait(&status) > 0) bad |= status != 0;
    return bad;
}
