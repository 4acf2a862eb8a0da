// Starts a program and leaves it stopped by job control before its first instruction: `PID is stopped`. Ends as it
// does.
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(argv[1], argv + 1);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0); // the SIGTRAP of its exec
    if (ptrace(PTRACE_DETACH, child, 0, SIGSTOP) != 0) return 1;
    waitpid(child, &status, WUNTRACED);
    printf("%d is stopped\n", child);
    fflush(stdout);
    do waitpid(child, &status, 0);
    while (!WIFEXITED(status) && !WIFSIGNALED(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
