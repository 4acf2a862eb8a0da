/*
 * guarded: a process that may not be looked at (prctl(PR_SET_DUMPABLE, 0), as programs with secrets do).
 *
 * Prints "ready PID"; for each line on standard input calls do_work and prints "worked".
 */
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

int main(void) {
    char line[64];

    prctl(PR_SET_DUMPABLE, 0);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        do_work(1);
        printf("worked\n");
        fflush(stdout);
    }
    return 0;
}
