/*
 * deliveries: signals that have to arrive, each once, in their order, with their values, while hot() is called.
 *
 * Prints "ready PID" and reads lines:
 *
 *     queue     another process queues real-time signals with the values 1, 2, 3 … until the next line comes; they are
 *               handled on an alternate stack. "queue on" when 1,000 have come, then
 *               "queue sent N got N bad B calls C": bad ones had another value, sender or stack than they should have
 *     bursts N  another process queues three of them for the thread, N times, a moment apart, while tap() is called,
 *               and prints the same; C counts the calls of tap
 *     jump N    a 1 kHz timer's handler leaves hot() by siglongjmp, N times. "jump N calls C"
 *     read N    reads an empty pipe N times under a 1 kHz timer with SA_RESTART, and N times under one without; all
 *               should be restarted, and interrupted. "read restarted N interrupted N"
 *     trap N    executes int3 N times, for a handler of its own. "trap N bad B"
 *
 * C counts the calls of hot. At the end of its input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "machine.h"

#define ALONE __attribute__((noinline, noclone))

static struct {
    volatile long sent;
    volatile long got;
    volatile int done;
} * shared;
static volatile long calls, got, bad, last, jumps, handled;
static volatile int inside;
static pid_t sender;
static char stack[65536];
static sigjmp_buf back;

ALONE long hot(long n) {
    calls++;
    inside = 1;
    for (volatile int i = 0; i < 2000; i++) continue;
    inside = 0;
    return n + 1;
}

static void on_queued(int sig, siginfo_t *info, void *context) {
    char here;

    (void)sig;
    (void)context;
    shared->got = ++got;
    if (info->si_value.sival_int != last + 1 || info->si_pid != sender || info->si_code != SI_QUEUE) bad++;
    if (&here < stack || &here >= stack + sizeof stack) bad++;
    last = info->si_value.sival_int;
}

ALONE long tap(long n) {
    calls++;
    return n + 1;
}

/* To the thread itself: a signal queued for it comes before one queued for its process. */
static void send_bursts(pid_t to, long times) {
    siginfo_t info = {.si_signo = SIGRTMIN, .si_code = SI_QUEUE};
    unsigned seed = 1;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    info.si_pid = getpid();
    for (long i = 0; i < 3 * times;) {
        info.si_value.sival_int = (int)i + 1;
        if (syscall(SYS_rt_tgsigqueueinfo, to, to, SIGRTMIN, &info) != 0) {
            sched_yield();
            continue;
        }
        shared->sent = ++i;
        for (volatile int pause = rand_r(&seed) % 300; pause > 0; pause--) continue;
        while (i % 3 == 0 && shared->got < i) sched_yield();
    }
    shared->done = 1;
    _exit(0);
}

static void send_until_line(pid_t to) {
    struct pollfd input = {0, POLLIN, 0};
    union sigval value = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    do {
        // Queued signals count against a limit of the user's, which timers of others need, too (RLIMIT_SIGPENDING).
        int few = shared->sent - shared->got < 64;

        value.sival_int = (int)shared->sent + 1;
        if (few && sigqueue(to, SIGRTMIN, value) == 0)
            shared->sent++;
        else
            sched_yield();
    } while (shared->sent % 16 != 0 || poll(&input, 1, 0) == 0);
    shared->done = 1;
    _exit(0);
}

/* bursts 0: until the next line comes, while hot is called. */
static void queue(long bursts) {
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    pid_t self = getpid();
    sigset_t queued;

    sigaltstack(&alternate, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    sigemptyset(&queued);
    sigaddset(&queued, SIGRTMIN);
    calls = got = bad = last = shared->sent = shared->got = shared->done = 0;
    sigprocmask(SIG_BLOCK, &queued, NULL);
    sender = fork();
    if (sender == 0) bursts > 0 ? send_bursts(self, bursts) : send_until_line(self);
    sigprocmask(SIG_UNBLOCK, &queued, NULL);
    while (bursts == 0 && got < 1000) hot(got);
    printf("queue on\n");
    fflush(stdout);
    while (!shared->done || got < shared->sent) bursts > 0 ? tap(got) : hot(got);
    waitpid(sender, NULL, 0);
    printf("queue sent %ld got %ld bad %ld calls %ld\n", shared->sent, got, bad, calls);
}

static void on_tick(int sig) {
    (void)sig;
    if (!inside) return;
    inside = 0;
    jumps++;
    siglongjmp(back, 1);
}

static void jump(long times) {
    struct itimerval each = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};

    calls = jumps = 0;
    signal(SIGALRM, on_tick);
    setitimer(ITIMER_REAL, &each, NULL);
    sigsetjmp(back, 1);
    do hot(jumps);
    while (jumps < times);
    setitimer(ITIMER_REAL, &off, NULL);
    printf("jump %ld calls %ld\n", jumps, calls);
}

static int wake_fd;

/* Every third one ends the read. */
static void on_alarm(int sig) {
    (void)sig;
    if (++handled % 3 == 0 && wake_fd > 0 && write(wake_fd, "x", 1) != 1) _exit(3);
}

/* How many of `times` reads of an empty pipe have had this result under a timer. */
static long count_reads(long times, int flags, long wanted) {
    struct itimerval each = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
    int fds[2];
    long count = 0;
    char byte;

    if (pipe(fds) != 0) exit(2);
    wake_fd = flags & SA_RESTART ? fds[1] : 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
    for (long i = 0; i < times; i++) {
        long result = read(fds[0], &byte, 1);

        if ((result < 0 ? -errno : result) == wanted) count++;
        hot(i);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    close(fds[0]);
    close(fds[1]);
    return count;
}

static void reads(long times) {
    long restarted = count_reads(times, SA_RESTART, 1), interrupted = count_reads(times, 0, -EINTR);

    printf("read restarted %ld interrupted %ld\n", restarted, interrupted);
}

static unsigned long trap_at;

static void on_trap(int sig, siginfo_t *info, void *context) {
    (void)sig;
    got++;
    if (info->si_code != SI_KERNEL && info->si_code != TRAP_BRKPT) bad++;
    if ((unsigned long)PC_OF((ucontext_t *)context) != trap_at + trap_pc) bad++;
    PC_OF((ucontext_t *)context) += trap_rest;
}

/* A breakpoint of its own, with its own handler. */
static void traps(long times) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

    sigaction(SIGTRAP, &action, NULL);
    got = bad = 0;
    for (long i = 0; i < times; i++) {
#if defined(__x86_64__)
        __asm__ volatile("lea 1f(%%rip), %0\n1: int3" : "=&r"(trap_at) : : "memory");
#else
        __asm__ volatile("adr %0, 1f\n1: brk #0" : "=&r"(trap_at) : : "memory");
#endif
        hot(i);
    }
    printf("trap %ld bad %ld\n", got, bad);
}

int main(void) {
    char line[64];

    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        long number = strchr(line, ' ') ? atol(strchr(line, ' ')) : 0;

        if (strncmp(line, "queue", 5) == 0) queue(0);
        if (strncmp(line, "bursts", 6) == 0) queue(number);
        if (strncmp(line, "jump", 4) == 0) jump(number);
        if (strncmp(line, "read", 4) == 0) reads(number);
        if (strncmp(line, "trap", 4) == 0) traps(number);
        fflush(stdout);
    }
    return 0;
}
