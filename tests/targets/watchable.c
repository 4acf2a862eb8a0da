/*
 * watchable: whether the processor's debug registers stop anything here.
 *
 * It has a child's write watched by ptrace, and leaves with status 0 if that was stopped by it, with 1 if not.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long written;

int main(void) {
#ifdef __x86_64__
    enum { local_0 = 1, write_of_8 = 0x9 << 16 };
    const size_t at = offsetof(struct user, u_debugreg);
    int status;
    pid_t child = fork();

    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        written = 1;
        _exit(0);
    }
    waitpid(child, &status, 0);
    ptrace(PTRACE_POKEUSER, child, at, &written);
    ptrace(PTRACE_POKEUSER, child, at + 7 * sizeof(long), local_0 | write_of_8);
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return 1;
    kill(child, SIGKILL);
    return WSTOPSIG(status) == SIGTRAP ? 0 : 1;
#else
    return 1;
#endif
}
