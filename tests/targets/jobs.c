/*
 * jobs: a shell's job that its terminal stops, three times, under the eyes of its parent.
 *
 * A shell with a terminal of its own starts a job in the background. Prints "job PID" and "ready"; behind a line on the
 * standard input the job calls do_work all the time and
 *
 *     reads the terminal in the background: SIGTTIN; a line comes when it is in the foreground
 *     sets the terminal's modes in the background: SIGTTOU
 *     is stopped in the foreground by the terminal's control character: SIGTSTP
 *
 * Each time the shell continues it. "seen SIGNAL continued SIGNAL continued … exited STATUS calls C": the results of
 * waitid in the shell, and how often do_work was called. STATUS is 0 where all system calls of the job did what they
 * should.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static volatile long *calls;
static volatile int *phase; /* of the job: how many stops are behind it */

__attribute__((noinline, noclone)) long do_work(long n) {
    ++*calls;
    __asm__ volatile("");
    return n + 1;
}

static void need(int holds, const char *what) {
    if (holds) return;
    perror(what);
    _exit(1);
}

static int job(int go, int terminal) {
    char line[8];
    struct termios modes;

    if (read(go, line, 1) != 1) return 1;
    for (int i = 0; i < 1000; i++) do_work(i);
    if (read(terminal, line, sizeof line) != 2 || line[0] != 'a') return 2;
    *phase = 1;
    if (tcgetattr(terminal, &modes)) return 3;
    while (tcgetpgrp(terminal) == getpgrp()) do_work(0); /* until the shell has taken it back */
    if (tcsetattr(terminal, TCSANOW, &modes)) return 4;
    *phase = 2;
    while (*phase == 2) do_work(0);
    return 0;
}

/* The next report on its job to the shell; continues it in the foreground where it is stopped. */
static int tell_next(pid_t pid, int terminal) {
    siginfo_t info = {0};

    need(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WCONTINUED | WEXITED) == 0, "waitid");
    if (info.si_code == CLD_CONTINUED) {
        printf(info.si_status == SIGCONT ? "continued " : "continued by %d ", info.si_status);
        return 1;
    }
    if (info.si_code != CLD_STOPPED) {
        printf("%s %d ", info.si_code == CLD_EXITED ? "exited" : "killed by", info.si_status);
        return 0;
    }
    printf("%s ", sigabbrev_np(info.si_status));
    need(tcsetpgrp(terminal, pid) == 0, "tcsetpgrp");
    need(kill(-pid, SIGCONT) == 0, "SIGCONT");
    return 1;
}

static void until_phase(int wanted) {
    while (*phase != wanted) sched_yield();
}

static int shell(int master, const char *slave) {
    int go[2], terminal, stops = 0;
    char line[8];
    pid_t pid;

    setsid();
    terminal = open(slave, O_RDWR); /* a session's first terminal is its own */
    need(terminal >= 0 && tcgetpgrp(terminal) == getpgrp(), "the terminal");
    signal(SIGTTOU, SIG_IGN);
    need(pipe(go) == 0, "pipe");
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTTOU, SIG_DFL);
        setpgid(0, 0);
        _exit(job(go[0], terminal));
    }
    setpgid(pid, pid);
    printf("job %d\nready\n", (int)pid);
    need(read(STDIN_FILENO, line, sizeof line) > 0 && write(go[1], "g", 1) == 1, "go");
    printf("seen ");
    while (tell_next(pid, terminal)) {
        if (++stops % 2) continue; /* it was continued */
        if (stops == 2) {
            need(write(master, "a\n", 2) == 2, "the line");
            until_phase(1);
            need(tcsetpgrp(terminal, getpgrp()) == 0, "tcsetpgrp");
        } else if (stops == 4) {
            until_phase(2);
            need(write(master, "\032", 1) == 1, "the control character");
        } else {
            *phase = 3;
        }
    }
    printf("calls %ld\n", *calls);
    return 0;
}

int main(void) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    setvbuf(stdout, NULL, _IOLBF, 0);
    need(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "a terminal");
    calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    phase = (volatile int *)(calls + 1);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(shell(master, ptsname(master)));
    }
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
