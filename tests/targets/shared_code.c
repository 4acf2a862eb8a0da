/*
 * shared_code: generated code in memory that a process shares with its child.
 *
 * Prints "ready PID ADDRESS". The child runs the code there all the time. For each line of its input the parent runs it
 * ten times and prints "calls 10 child S": S is 0 while the child is there, else its status.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
#if defined(__x86_64__)
    static const unsigned char code[] = {0x90, 0x48, 0x8d, 0x44, 0x7f, 0x01, 0xc3}; /* nop; lea 1(%rdi,%rdi,2); ret */
#else
    static const unsigned char code[] = {0x00, 0x04, 0x00, 0x8b, 0x00, 0x04, 0x00,
                                         0x91, 0xc0, 0x03, 0x5f, 0xd6}; /* add x0, x0, x0, lsl 1; add x0, x0, 1; ret */
#endif
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    long (*work)(long) = (long (*)(long))page;
    char line[64];
    pid_t child;

    if (page == MAP_FAILED) return 2;
    memcpy(page, code, sizeof(code));
    __builtin___clear_cache((char *)page, (char *)page + sizeof(code));
    child = fork();
    if (child == 0)
        for (long i = 0;; i++)
            if (work(i) != i * 3 + 1 || getppid() == 1) _exit(9);
    printf("ready %d %p\n", (int)getpid(), (void *)page);
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        int status = 0;

        for (long i = 0; i < 10; i++)
            if (work(i) != i * 3 + 1) return 3;
        waitpid(child, &status, WNOHANG);
        printf("calls 10 child %d\n", status);
        fflush(stdout);
    }
    kill(child, SIGKILL);
    return 0;
}
