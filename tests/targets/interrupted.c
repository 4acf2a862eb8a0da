/*
 * interrupted [thread]: system calls that sleep for ever, but for a 1 kHz timer, whose handler makes them fail with
 * EINTR. With `thread` they are made by another thread than the first, which sleeps.
 *
 * Prints "ready PID" and reads lines `WAY N`; WAY: plain, the handler is one without SA_RESTART; restart, it is one
 * with SA_RESTART until a call has been restarted three times. Each of the calls is made N times, from `call_site`, and
 * "CALL interrupted I restarts R" is printed: how many failed with EINTR, and how often the handler found that one
 * would be restarted. Then "made M bad B": how many were made in all, the restarts included, and how much was wrong:
 * registers that a handler or the program saw with other values than the kernel leaves there.
 *
 * `call I` prints "calling NAME NUMBER", makes the call of that index (or prints "none") without a timer, and prints
 * "NAME result R handled H": the call's result, and whether SIGALRM had come.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "own_text.h"

enum { most_restarts = 3, set_bytes = 8 };

static volatile long restarts, bad, handled; /* restarts: of the call that is being made */
static struct sigaction interrupting, restarting;

#if defined(__x86_64__)
extern char call_site[];

/* The kernel leaves the address behind the call in rcx; 0: it was not made yet. */
__attribute__((noinline)) long make_call(long number, const long *a) {
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    long result, behind = 0;

    __asm__ volatile(".globl call_site\n"
                     "call_site: syscall"
                     : "=a"(result), "+c"(behind)
                     : "0"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "r11", "memory");
    if (behind != (long)(call_site + 2)) bad++;
    return result;
}

static void on_tick(int sig, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    char *pc = (char *)registers[REG_RIP], *behind = (char *)registers[REG_RCX];

    handled++;
    if (!is_own((unsigned long)pc)) bad++;
    if (info->si_code != SI_KERNEL && info->si_code != SI_USER) bad++;
    if (pc == call_site + 2 && behind != call_site + 2) bad++;
    if (pc != call_site) return;
    if (behind == call_site + 2) { /* it was made, and will be again */
        registers[REG_RCX] = 0;
        if (++restarts == most_restarts) sigaction(sig, &interrupting, NULL);
    } else if (behind) {
        bad++;
    }
}
#else
static long make_call(long number, const long *a) {
    return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? -errno : 0;
}
static void on_tick(int sig, siginfo_t *info, void *context) {
    (void)sig;
    (void)info;
    (void)context;
}
#endif

static struct timespec ages = {1000, 0};
static struct timeval short_ages = {1000, 0};
static struct pollfd idle_poll;
static fd_set idle_set;
static struct epoll_event event;
static struct sembuf take = {0, -1, 0};
static struct io_event io_event;
static struct flock lock = {.l_type = F_WRLCK};
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_size = sizeof(address);
static sigset_t usr1, none;
static aio_context_t aio;
static int word, idle[2], full[2], pair[2], limited[2], signals;
static pid_t child;
static struct {
    long type;
    char text[256];
} message;

#define AT(x) ((long)&(x))
static struct {
    const char *name;
    long number, arguments[6];
} calls[64];
static int count;

static void may(const char *name, long number, long a, long b, long c, long d, long e, long f) {
    if (a < 0 && number != SYS_wait4) return; /* what it is made on cannot be had here */
    calls[count].name = name;
    calls[count].number = number;
    memcpy(calls[count++].arguments, (long[]){a, b, c, d, e, f}, sizeof(calls[0].arguments));
}

/* Holds what others wait for: a lock of each kind. */
static void hold(int own_file, int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    flock(own_file, LOCK_EX);
    fcntl(own_file, F_SETLK, &lock);
    if (write(ready, "x", 1) != 1) _exit(1);
    for (;;) pause();
}

static void make_locks(int *shared, int *other) {
    char name[] = "/tmp/interrupted-XXXXXX", byte;
    int ready[2], own;

    *shared = mkstemp(name);
    own = open(name, O_RDWR);
    *other = open(name, O_RDWR);
    unlink(name);
    if (*shared < 0 || own < 0 || pipe(ready) != 0) exit(2);
    child = fork();
    if (child == 0) hold(own, ready[1]);
    if (read(ready[0], &byte, 1) != 1) exit(2);
}

static void make_sleeps(void) {
    may("nanosleep", SYS_nanosleep, AT(ages), 0, 0, 0, 0, 0);
    may("clock_nanosleep", SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, AT(ages), 0, 0, 0);
    may("futex", SYS_futex, AT(word), FUTEX_WAIT, 0, 0, 0, 0);
    may("futex_timed", SYS_futex, AT(word), FUTEX_WAIT, 0, AT(ages), 0, 0);
    may("rt_sigtimedwait", SYS_rt_sigtimedwait, AT(usr1), 0, AT(ages), set_bytes, 0, 0);
    may("rt_sigsuspend", SYS_rt_sigsuspend, AT(none), set_bytes, 0, 0, 0, 0);
    may("wait4", SYS_wait4, child, 0, 0, 0, 0, 0);
    may("waitid", SYS_waitid, P_PID, child, 0, WEXITED, 0, 0);
    may("io_getevents", SYS_io_getevents, syscall(SYS_io_setup, 4, &aio) == 0 ? (long)aio : -1, 1, 1, AT(io_event),
        AT(ages), 0);
#if defined(SYS_pause)
    may("pause", SYS_pause, 0, 0, 0, 0, 0, 0);
#endif
}

static void make_polls(void) {
    int epoll = epoll_create1(0);

#if defined(SYS_poll)
    may("poll", SYS_poll, AT(idle_poll), 1, -1, 0, 0, 0);
    may("poll_timed", SYS_poll, AT(idle_poll), 1, 1000000, 0, 0, 0);
    may("select", SYS_select, FD_SETSIZE, AT(idle_set), 0, 0, AT(short_ages), 0);
    may("epoll_wait", SYS_epoll_wait, epoll, AT(event), 1, -1, 0, 0);
#endif
    may("ppoll", SYS_ppoll, AT(idle_poll), 1, AT(ages), 0, 0, 0);
    may("ppoll_masked", SYS_ppoll, AT(idle_poll), 1, AT(ages), AT(none), set_bytes, 0);
    may("pselect6", SYS_pselect6, FD_SETSIZE, AT(idle_set), 0, 0, AT(ages), 0);
    may("epoll_pwait", SYS_epoll_pwait, epoll, AT(event), 1, 1000000, AT(none), set_bytes);
#if defined(SYS_epoll_pwait2)
    may("epoll_pwait2", SYS_epoll_pwait2, epoll, AT(event), 1, AT(ages), 0, 0);
#endif
}

static void make_transfers(void) {
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), shared, other;
    struct mq_attr few = {.mq_maxmsg = 1, .mq_msgsize = sizeof(message)};
    struct timeval limit = {1000, 0};

    bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t));
    listen(listener, 4);
    setsockopt(limited[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    make_locks(&shared, &other);
    may("read", SYS_read, idle[0], AT(message), 8, 0, 0, 0);
    may("write", SYS_write, full[1], AT(message), 1, 0, 0, 0);
    may("accept", SYS_accept, listener, AT(address), AT(address_size), 0, 0, 0);
    may("accept4", SYS_accept4, listener, 0, 0, 0, 0, 0);
    may("recvfrom", SYS_recvfrom, pair[0], AT(message), 8, 0, 0, 0);
    may("recvfrom_timed", SYS_recvfrom, limited[0], AT(message), 8, 0, 0, 0);
    may("semop", SYS_semop, semget(IPC_PRIVATE, 1, 0600), AT(take), 1, 0, 0, 0);
    may("semtimedop", SYS_semtimedop, semget(IPC_PRIVATE, 1, 0600), AT(take), 1, AT(ages), 0, 0);
    may("msgrcv", SYS_msgrcv, msgget(IPC_PRIVATE, 0600), AT(message), sizeof(message.text), 0, 0, 0);
    may("mq_timedreceive", SYS_mq_timedreceive, syscall(SYS_mq_open, "interrupted", O_CREAT | O_RDWR, 0600, &few),
        AT(message), sizeof(message), 0, 0, 0);
    may("flock", SYS_flock, shared, LOCK_EX, 0, 0, 0, 0);
    may("fcntl", SYS_fcntl, other, F_SETLKW, AT(lock), 0, 0, 0);
    may("eventfd", SYS_read, eventfd(0, 0), AT(message), 8, 0, 0, 0);
    may("timerfd", SYS_read, timerfd_create(CLOCK_MONOTONIC, 0), AT(message), 8, 0, 0, 0);
    may("signalfd", SYS_read, signals, AT(message), sizeof(message), 0, 0, 0);
    may("inotify", SYS_read, inotify_init1(0), AT(message), sizeof(message), 0, 0, 0);
    syscall(SYS_mq_unlink, "interrupted");
}

static void make_ready(void) {
    char some[4096] = {0};

    sigemptyset(&none);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    signals = signalfd(-1, &usr1, 0);
    if (pipe(idle) != 0 || pipe2(full, O_NONBLOCK) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, limited) != 0)
        exit(2);
    while (write(full[1], some, sizeof(some)) > 0) continue;
    fcntl(full[1], F_SETFL, 0);
    idle_poll = (struct pollfd){idle[0], POLLIN, 0};
    FD_ZERO(&idle_set);
    interrupting = (struct sigaction){.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO};
    restarting = (struct sigaction){.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    note_text();
    make_transfers();
    make_sleeps();
    make_polls();
}

static void make_idle(void) {
    restarts = handled = 0;
    FD_SET(idle[0], &idle_set);
    short_ages.tv_sec = 1000;
}

/* How many calls there were with those that were made again. */
static long make_calls(int which, const struct sigaction *action, long times) {
    struct itimerval each = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    long interruptions = 0, again = 0;

    for (long i = 0; i < times; i++) {
        long result;

        make_idle();
        sigaction(SIGALRM, action, NULL);
        setitimer(ITIMER_REAL, &each, NULL);
        result = make_call(calls[which].number, calls[which].arguments);
        setitimer(ITIMER_REAL, &off, NULL);
        interruptions += result == -EINTR;
        again += restarts;
    }
    printf("%s interrupted %ld restarts %ld\n", calls[which].name, interruptions, again);
    return times + again;
}

static void make_one(int which) {
    long result;

    if (which >= count) {
        printf("none\n");
        return;
    }
    make_idle();
    sigaction(SIGALRM, &interrupting, NULL);
    printf("calling %s %ld\n", calls[which].name, calls[which].number);
    fflush(stdout);
    sigaction(0, &interrupting, NULL); /* makes no call of the kernel: a tracer that waits for one sees the next */
    result = make_call(calls[which].number, calls[which].arguments);
    printf("%s result %ld handled %ld\n", calls[which].name, result, handled);
}

static void make_all(const struct sigaction *action, long times) {
    long made = 0;

    bad = 0;
    for (int i = 0; i < count; i++) made += make_calls(i, action, times);
    printf("made %ld bad %ld\n", made, bad);
}

static void mask_alarm(int how) {
    sigset_t alarm;

    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(how, &alarm, NULL);
}

static void *obey(void *arg) {
    char line[64];

    mask_alarm(SIG_UNBLOCK);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        long number = strchr(line, ' ') ? atol(strchr(line, ' ')) : 1;

        if (strncmp(line, "call", 4) == 0) make_one((int)number);
        if (strncmp(line, "plain", 5) == 0) make_all(&interrupting, number);
        if (strncmp(line, "restart", 7) == 0) make_all(&restarting, number);
        fflush(stdout);
    }
    return arg;
}

int main(int argc, char **argv) {
    pthread_t other;

    (void)argv;
    make_ready();
    if (argc > 1) {
        mask_alarm(SIG_BLOCK);
        pthread_create(&other, NULL, obey, NULL);
        pthread_join(other, NULL);
    } else {
        obey(NULL);
    }
    kill(child, SIGKILL);
    return 0;
}
