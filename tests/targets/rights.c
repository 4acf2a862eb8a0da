/*
 * rights: starts programs that may have rights of their own.
 *
 * Prints "ready PID"; for each line "WAY PATH" it starts `PATH -u` (a copy of id) by fork, vfork, spawn or system, and
 * so prints "rights UID".
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static void start(const char *way, char *path) {
    char *arguments[] = {path, "-u", NULL};
    char command[600];
    pid_t child = -1;

    if (strcmp(way, "fork") == 0) {
        child = fork();
        if (child == 0) {
            execv(path, arguments);
            _exit(9);
        }
    } else if (strcmp(way, "vfork") == 0) {
        child = vfork();
        if (child == 0) {
            execv(path, arguments);
            _exit(9);
        }
    } else if (strcmp(way, "spawn") == 0) {
        posix_spawn(&child, path, NULL, NULL, arguments, environ);
    } else {
        snprintf(command, sizeof(command), "%s -u", path);
        if (system(command) != 0) printf("failed\n");
        return;
    }
    waitpid(child, NULL, 0);
}

int main(void) {
    char line[600], way[32], path[512];

    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "%31s %511s", way, path) != 2) return 2;
        do_work(1);
        printf("rights ");
        fflush(stdout);
        start(way, path);
    }
    return 0;
}
