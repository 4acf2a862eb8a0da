/*
 * watchable: whether the processor's debug registers stop anything here.
 *
 * It has a child's write watched by ptrace, and leaves with status 0 if that was stopped by it, with 1 if not.
 */
#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long written;

#ifdef __x86_64__
static void watch(pid_t child) {
    enum { local_0 = 1, write_of_8 = 0x9 << 16 };
    const size_t at = offsetof(struct user, u_debugreg);

    ptrace(PTRACE_POKEUSER, child, at, &written);
    ptrace(PTRACE_POKEUSER, child, at + 7 * sizeof(long), local_0 | write_of_8);
}
#else
static void watch(pid_t child) {
    enum { enabled = 1, user = 2 << 1, write = 2 << 3, all_8 = 0xff << 5 };
    struct {
        uint32_t info, padding;
        uint64_t address;
        uint32_t control, more_padding;
    } state = {0, 0, (uint64_t)&written, enabled | user | write | all_8, 0};
    struct iovec area = {&state, sizeof state};

    ptrace(PTRACE_SETREGSET, child, NT_ARM_HW_WATCH, &area);
}
#endif

int main(void) {
    int status;
    pid_t child = fork();

    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        written = 1;
        _exit(0);
    }
    waitpid(child, &status, 0);
    watch(child);
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return 1;
    kill(child, SIGKILL);
    return WSTOPSIG(status) == SIGTRAP ? 0 : 1;
}
