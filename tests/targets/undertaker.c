/*
 * undertaker: starts ktrace and kills its tracing process before one of its requests.
 *
 *     undertaker N [PID] COMMAND [ARG...]
 *
 * COMMAND is run; the first process that it starts is the one that traces. That one is killed (-9) when it is about to
 * make its Nth request: a ptrace(2), or a write to a process's memory. Prints "killed before N", or, where it ended
 * first, "ended after M"; COMMAND's exit status becomes its own. With PID the tracing process lives; SIGUSR1 is sent to
 * that process instead, and the request is made when its leader has ended, or is stopped: "delivered before N". Where N
 * is iN, only those requests count that follow one to deliver another signal than SIGTRAP (PTRACE_SETSIGINFO).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

static long requests, limit;
static pid_t tracing;
static int killed, delivered;
static pid_t mortal; /* whose leader is to end */
static int only_behind_signals, is_behind_signal;

static void die(const char *what) {
    perror(what);
    exit(125);
}

/* The command, seized before it runs, up to its first fork; the new process is traced from its birth. */
static pid_t start(char **command) {
    int go[2], status;
    char byte = 0;
    pid_t pid;

    if (pipe(go) != 0) die("pipe");
    if ((pid = fork()) == 0) {
        if (read(go[0], &byte, 1) != 1) _exit(125);
        close(go[0]);
        close(go[1]);
        execvp(command[0], command);
        _exit(127);
    }
    if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL) != 0) die("seize");
    if (write(go[1], &byte, 1) != 1) die("write");
    close(go[0]);
    close(go[1]);
    for (;;) {
        unsigned long child;
        int event;

        if (waitpid(pid, &status, __WALL) < 0) die("wait");
        if (!WIFSTOPPED(status)) return pid; /* it has ended */
        event = status >> 16;
        if (event == PTRACE_EVENT_FORK) {
            ptrace(PTRACE_GETEVENTMSG, pid, 0, &child);
            tracing = (pid_t)child;
            ptrace(PTRACE_DETACH, pid, 0, 0);
            return pid;
        }
        ptrace(PTRACE_CONT, pid, 0, event == 0 ? WSTOPSIG(status) : 0);
    }
}

static int is_request(const struct ptrace_syscall_info *info) {
    return info->op == PTRACE_SYSCALL_INFO_ENTRY && (info->entry.nr == SYS_ptrace || info->entry.nr == SYS_pwrite64);
}

/* True for a request to deliver another signal than SIGTRAP to a task. */
static int tells_of_signal(pid_t tid, const struct ptrace_syscall_info *request) {
    siginfo_t info;
    struct iovec here = {&info, sizeof info}, there = {(void *)request->entry.args[3], sizeof info};

    if (request->entry.nr != SYS_ptrace || request->entry.args[0] != PTRACE_SETSIGINFO) return 0;
    return process_vm_readv(tid, &here, 1, &there, 1, 0) == sizeof info && info.si_signo != SIGTRAP;
}

/* At the entry of a system call: is it a request that counts? */
static int counts(pid_t tid) {
    struct ptrace_syscall_info info;
    int was_behind_signal = is_behind_signal;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) <= 0 || !is_request(&info)) return 0;
    is_behind_signal = tells_of_signal(tid, &info);
    return !only_behind_signals || was_behind_signal;
}

/* The state letter of a thread, by its process's leader; 0: it is not there. */
static char state_of_leader(pid_t pid) {
    char path[64], text[512], *name_end;
    ssize_t size;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if ((fd = open(path, O_RDONLY)) < 0) return 0;
    size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size > 0 ? size : 0] = 0;
    name_end = strrchr(text, ')');
    return name_end ? name_end[2] : 0;
}

static void tell_mortal(void) {
    char state;

    delivered = 1;
    kill(mortal, SIGUSR1);
    while ((state = state_of_leader(mortal)) == 'R' || state == 'S' || state == 'D') sched_yield();
}

static void serve(pid_t tid, int status) {
    int event = status >> 16, sig = WSTOPSIG(status);

    if (event == PTRACE_EVENT_STOP && tid == tracing)
        /* Its threads are traced, too; not the processes that it starts. */
        ptrace(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    if (sig == (SIGTRAP | 0x80) && counts(tid) && ++requests == limit) {
        if (mortal)
            tell_mortal();
        else
            kill(tracing, SIGKILL);
        killed = !mortal;
    }
    ptrace(PTRACE_SYSCALL, tid, 0, event != 0 || (sig & 0x80) ? 0 : sig);
}

int main(int argc, char **argv) {
    int status = 0;
    pid_t pid, tid;

    if (argc < 3) return 125;
    only_behind_signals = argv[1][0] == 'i';
    limit = atol(argv[1] + only_behind_signals);
    mortal = (pid_t)atoi(argv[2]);
    pid = start(argv + 2 + (mortal != 0));
    if (tracing) {
        /* Until the process has ended, that is its last thread and then its leader. */
        while ((tid = waitpid(-1, &status, __WALL)) > 0) {
            if (WIFSTOPPED(status))
                serve(tid, status);
            else if (tid == tracing)
                break;
            else if (tid == pid)
                die("the command has ended before the process that it had started");
        }
        if (waitpid(pid, &status, 0) != pid) die("wait");
    }
    if (killed)
        printf("killed before %ld\n", requests);
    else if (delivered)
        printf("delivered before %ld\n", limit);
    else
        printf("ended after %ld\n", requests);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
