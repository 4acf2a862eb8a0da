/*
 * sleeper CALL [THREADS [TIMEOUT_MS]]: sleeps in the system call CALL, with all of its threads (default 1).
 *
 * Prints "ready PID" and sleeps. A helper process, which is not traced, reads lines: `wake` ends the sleep in the way
 * that the call waits for. Calls with a timeout (their names end with _timeout) end by themselves after TIMEOUT_MS
 * (default 900); the helper prints "moment 1", "moment 2" and "moment 3" when one third of that is over, two and all,
 * and how late it is to say so, in milliseconds: "late N". Then each thread writes the variable `awake`, calls do_work
 * once, and prints
 *
 *     woke RESULT ERRNO MILLISECONDS at MOMENT
 *
 * where RESULT is the call's own (for calls that are woken 1 where all is as it should be), and MOMENT is when it was
 * over, in milliseconds of CLOCK_MONOTONIC. The process leaves with status 0 when its input has ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static long timeout_ms = 900;
static int pipe_fds[2], listener, pair[2], messages, semaphores, epoll, epoll_idle, event_fd, signal_fd;
static struct sockaddr_un address;
static socklen_t address_size = sizeof(address);
static int *word;
static pthread_mutex_t *robust; /* shared with the child, which holds it and dies with it */
static pid_t helper, child;
static sigset_t usr1;
static volatile sig_atomic_t handled;
static long (*sleep_in)(void);
static volatile long *started; /* when, in milliseconds; shared with the helper */
volatile long awake;
static struct timespec duration;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static void on_usr2(int sig) {
    (void)sig;
    handled++;
}

static long sleep_nanosleep(void) {
    struct timespec left;

    return nanosleep(&duration, &left);
}
/* The time-out and what is left of it are one: it is as it was when the sleep comes to its end. */
static long same_duration(long result, const struct timespec *now) {
    return result == 0 && memcmp(now, &duration, sizeof(duration)) != 0 ? -2 : result;
}
static long sleep_clock_nanosleep(void) {
    struct timespec until;
    long nanoseconds;

    clock_gettime(CLOCK_MONOTONIC, &until);
    nanoseconds = until.tv_nsec + duration.tv_nsec;
    until.tv_sec += duration.tv_sec + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}
static long sleep_poll(void) {
    struct pollfd wanted = {pipe_fds[0], POLLIN, 0};

    return poll(&wanted, 1, -1);
}
static long sleep_poll_timeout(void) {
    struct pollfd wanted = {pair[0], POLLIN, 0};

    return poll(&wanted, 1, (int)timeout_ms);
}
static long sleep_select(void) {
    fd_set set;

    FD_ZERO(&set);
    FD_SET(pipe_fds[0], &set);
    return select(pipe_fds[0] + 1, &set, NULL, NULL, NULL);
}
static long sleep_ppoll_timeout(void) {
    struct pollfd wanted = {pair[0], POLLIN, 0};

    return ppoll(&wanted, 1, &duration, &usr1);
}
/* The kernel cannot write what is left. */
static long sleep_ppoll_constant(void) {
    struct timespec *constant = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    *constant = duration;
    mprotect(constant, 4096, PROT_READ);
    return syscall(SYS_ppoll, NULL, 0, constant, NULL, 0);
}
/* The kernel may not write what is left. */
static long sleep_ppoll_sticky(void) {
    struct timespec sticky = duration;

    personality(STICKY_TIMEOUTS);
    return same_duration(syscall(SYS_ppoll, NULL, 0, &sticky, NULL, 0), &sticky);
}
static long sleep_select_timeout(void) {
    struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000L};
    fd_set set;

    FD_ZERO(&set);
    FD_SET(pair[0], &set);
    return select(pair[0] + 1, &set, NULL, NULL, &timeout);
}
static long sleep_epoll_wait(void) {
    struct epoll_event event;

    return epoll_wait(epoll, &event, 1, -1);
}
static long sleep_epoll_wait_at_most(void) {
    struct epoll_event event;

    return epoll_wait(epoll, &event, 1, 1000000);
}
static long sleep_epoll_wait_timeout(void) {
    struct epoll_event event;

    return epoll_wait(epoll_idle, &event, 1, (int)timeout_ms);
}
static long sleep_epoll_pwait2_timeout(void) {
    struct epoll_event event;

    return syscall(SYS_epoll_pwait2, epoll_idle, &event, 1, &duration, NULL, 0);
}
/* A wake-up is a new value; the first that sees it gets EAGAIN. */
static long sleep_futex(void) { return syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL) == 0 || errno == EAGAIN; }
static long sleep_futex_timeout(void) { return syscall(SYS_futex, word + 1, FUTEX_WAIT, 0, &duration); }
static long sleep_read(void) {
    char byte;

    return read(pipe_fds[0], &byte, 1);
}
static long sleep_recv_timeout(void) {
    struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000L};
    char byte;

    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    return recv(pair[0], &byte, 1, 0);
}
static long sleep_preadv2_timeout(void) {
    struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000L};
    char byte;
    struct iovec whole = {&byte, 1};

    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    return preadv2(pair[0], &whole, 1, -1, 0);
}
static long sleep_terminal_timeout(void) {
    int keyboard = posix_openpt(O_RDWR | O_NOCTTY), terminal;
    struct termios mode;
    char name[64], byte;

    // Not ptsname(3): its result is shared, and two threads would wait for one terminal, one behind the other.
    if (grantpt(keyboard) != 0 || unlockpt(keyboard) != 0 || ptsname_r(keyboard, name, sizeof(name)) != 0) return -2;
    terminal = open(name, O_RDWR | O_NOCTTY);
    if (tcgetattr(terminal, &mode) != 0) return -2;
    cfmakeraw(&mode);
    mode.c_cc[VMIN] = 0;
    mode.c_cc[VTIME] = (cc_t)(timeout_ms / 100);
    tcsetattr(terminal, TCSANOW, &mode);
    return read(terminal, &byte, 1);
}
static long sleep_accept_timeout(void) {
    struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000L};

    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    return accept(listener, NULL, NULL);
}
static long sleep_accept(void) { return accept(listener, NULL, NULL) >= 0; }
static long sleep_sigwait(void) {
    int got = 0;

    return sigwait(&usr1, &got) == 0 && got == SIGUSR1;
}
static long sleep_sigtimedwait_timeout(void) { return sigtimedwait(&usr1, NULL, &duration); }
static long sleep_eventfd(void) {
    unsigned long told = 0;

    return read(event_fd, &told, sizeof(told)) == sizeof(told) && told == 7;
}
static long sleep_signalfd(void) {
    struct signalfd_siginfo told;

    return read(signal_fd, &told, sizeof(told)) == sizeof(told) && told.ssi_signo == SIGUSR1 &&
           told.ssi_pid == (unsigned)helper;
}
static int make_timer(void) {
    struct itimerspec once = {.it_value = duration};
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);

    return timerfd_settime(timer, 0, &once, NULL) == 0 ? timer : -1;
}
/* How often it has expired. */
static long sleep_timerfd_timeout(void) {
    unsigned long times = 0;

    return read(make_timer(), &times, sizeof(times)) == sizeof(times) ? (long)times : -2;
}
static long sleep_timerfd_poll_timeout(void) {
    struct pollfd wanted = {make_timer(), POLLIN, 0};

    return poll(&wanted, 1, -1);
}
static long sleep_robust(void) {
    return pthread_mutex_lock(robust) == EOWNERDEAD && pthread_mutex_consistent(robust) == 0 &&
           pthread_mutex_unlock(robust) == 0;
}
static long sleep_robust_timeout(void) {
    struct timespec until;
    long nanoseconds;

    clock_gettime(CLOCK_REALTIME, &until);
    nanoseconds = until.tv_nsec + duration.tv_nsec;
    until.tv_sec += duration.tv_sec + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    return pthread_mutex_timedlock(robust, &until);
}
static long sleep_pause(void) { return pause() < 0 && errno == EINTR && handled == 1; }
static long sleep_sigsuspend(void) {
    sigset_t none;

    sigemptyset(&none);
    return sigsuspend(&none) < 0 && errno == EINTR && handled == 1;
}
static long sleep_wait4(void) {
    int status = 0;

    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5;
}
static long sleep_waitid(void) {
    siginfo_t info;

    return waitid(P_PID, (id_t)child, &info, WEXITED) == 0 && info.si_status == 5;
}
static long sleep_msgrcv(void) {
    struct {
        long type;
        char text[8];
    } message;

    return msgrcv(messages, &message, sizeof(message.text), 0, 0) == 3;
}
static long sleep_semop(void) {
    struct sembuf take = {0, -1, 0};

    return semop(semaphores, &take, 1) == 0;
}
static long sleep_semtimedop_timeout(void) {
    struct sembuf take = {1, -1, 0};

    return semtimedop(semaphores, &take, 1, &duration);
}
static long sleep_io_getevents_timeout(void) {
    static __thread aio_context_t context;
    struct io_event event;

    if (syscall(SYS_io_setup, 4, &context) != 0) return -2;
    return syscall(SYS_io_getevents, context, 1, 1, &event, &duration);
}

#ifdef __x86_64__
/* A call with a number of 32-bit programs, and what they would answer. Memory for it has to lie low. */
static long call_by_int80(long number, long a, long b, long c, long d) {
    long result;

    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d)
                     : "memory", "r8", "r9", "r10", "r11");
    if (result >= 0) return result;
    errno = (int)-result;
    return -1;
}
static void *low_memory(void) {
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
}
static long sleep_int80_epoll_wait_timeout(void) {
    const long epoll_wait_32 = 256;

    return call_by_int80(epoll_wait_32, epoll_idle, (long)low_memory(), 1, timeout_ms);
}
static long sleep_int80_getpid(void) {
    const long getpid_32 = 20;

    return call_by_int80(getpid_32, 0, 0, 0, 0) == getpid();
}
#endif

static const struct {
    const char *name;
    long (*sleep)(void);
} calls[] = {
    {"nanosleep_timeout", sleep_nanosleep},
    {"clock_nanosleep_timeout", sleep_clock_nanosleep},
    {"poll", sleep_poll},
    {"poll_timeout", sleep_poll_timeout},
    {"ppoll_timeout", sleep_ppoll_timeout},
    {"ppoll_constant_timeout", sleep_ppoll_constant},
    {"ppoll_sticky_timeout", sleep_ppoll_sticky},
    {"preadv2_timeout", sleep_preadv2_timeout},
    {"terminal_timeout", sleep_terminal_timeout},
    {"accept_timeout", sleep_accept_timeout},
    {"select", sleep_select},
    {"select_timeout", sleep_select_timeout},
    {"epoll_wait", sleep_epoll_wait},
    {"epoll_wait_at_most", sleep_epoll_wait_at_most},
    {"epoll_wait_timeout", sleep_epoll_wait_timeout},
    {"epoll_pwait2_timeout", sleep_epoll_pwait2_timeout},
    {"futex", sleep_futex},
    {"futex_timeout", sleep_futex_timeout},
    {"read", sleep_read},
    {"recv_timeout", sleep_recv_timeout},
    {"accept", sleep_accept},
    {"sigwait", sleep_sigwait},
    {"sigtimedwait_timeout", sleep_sigtimedwait_timeout},
    {"eventfd", sleep_eventfd},
    {"signalfd", sleep_signalfd},
    {"timerfd_timeout", sleep_timerfd_timeout},
    {"timerfd_poll_timeout", sleep_timerfd_poll_timeout},
    {"robust", sleep_robust},
    {"robust_timeout", sleep_robust_timeout},
    {"pause", sleep_pause},
    {"sigsuspend", sleep_sigsuspend},
    {"wait4", sleep_wait4},
    {"waitid", sleep_waitid},
    {"msgrcv", sleep_msgrcv},
    {"semop", sleep_semop},
    {"semtimedop_timeout", sleep_semtimedop_timeout},
    {"io_getevents_timeout", sleep_io_getevents_timeout},
#ifdef __x86_64__
    {"int80_epoll_wait_timeout", sleep_int80_epoll_wait_timeout},
    {"int80_getpid", sleep_int80_getpid},
#endif
};

/* In the helper: all ways to be woken at once; those without a waiter do nothing. */
static void wake(pid_t sleeper, const char *call) {
    struct {
        long type;
        char text[8];
    } message = {1, "abc"};
    struct sembuf give = {0, 1, 0};
    int client;

    if (strcmp(call, "epoll_wait_at_most") == 0) { /* by that alone: the end of a child would be a signal, too */
        if (write(pipe_fds[1], "x", 1) != 1) _exit(1);
        return;
    }
    eventfd_write(event_fd, 7);
    if (strcmp(call, "sigwait") == 0 || strcmp(call, "signalfd") == 0) kill(sleeper, SIGUSR1);
    if (strcmp(call, "pause") == 0 || strcmp(call, "sigsuspend") == 0) kill(sleeper, SIGUSR2);
    if (write(pipe_fds[1], "x", 1) != 1) _exit(1);
    *word = 1;
    syscall(SYS_futex, word, FUTEX_WAKE, 1);
    client = socket(AF_UNIX, SOCK_STREAM, 0);
    connect(client, (struct sockaddr *)&address, address_size);
    kill(child, SIGTERM);
    msgsnd(messages, &message, 3, 0);
    semop(semaphores, &give, 1);
}

static void on_term(int sig) {
    (void)sig;
    _exit(5);
}

/* The child: it ends on request, with a lock that only it can give. */
static void hold(int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, on_term);
    pthread_mutex_lock(robust);
    if (write(ready, "x", 1) != 1) _exit(1);
    for (;;) pause();
}

static void make_robust(void) {
    pthread_mutexattr_t kind;
    int ready[2];
    char byte;

    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    robust = (pthread_mutex_t *)(word + 64);
    pthread_mutex_init(robust, &kind);
    if (pipe(ready) != 0) exit(2);
    child = fork();
    if (child == 0) hold(ready[1]);
    if (read(ready[0], &byte, 1) != 1) exit(2);
}

static void make_ready(void) {
    struct epoll_event event = {.events = EPOLLIN};

    if (pipe(pipe_fds) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) exit(2);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    address.sun_family = AF_UNIX;
    if (bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)) != 0 || listen(listener, 4) != 0) exit(2);
    getsockname(listener, (struct sockaddr *)&address, &address_size);
    messages = msgget(IPC_PRIVATE, 0600);
    semaphores = semget(IPC_PRIVATE, 2, 0600);
    word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    started = (volatile long *)(word + 16);
    epoll = epoll_create1(0);
    epoll_idle = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_fds[0], &event);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    event_fd = eventfd(0, 0);
    signal_fd = signalfd(-1, &usr1, 0);
    signal(SIGUSR2, on_usr2);
}

static long milliseconds(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for input until the moment is there (a third of the time-out each), and reports it. */
static void tell_moment(int moment) {
    struct pollfd input = {0, POLLIN, 0};
    long left;

    while (*started == 0) poll(NULL, 0, 1);
    left = *started + moment * timeout_ms / 3 - milliseconds();
    if (left > 0 && poll(&input, 1, (int)left) != 0) return;
    printf("moment %d late %ld\n", moment, milliseconds() - *started - moment * timeout_ms / 3);
    fflush(stdout);
}

static void help(pid_t sleeper, const char *call) {
    char line[64];

    if (strstr(call, "_timeout"))
        for (int moment = 1; moment <= 3; moment++) tell_moment(moment);
    while (fgets(line, sizeof(line), stdin)) wake(sleeper, call);
    msgctl(messages, IPC_RMID, NULL);
    semctl(semaphores, 0, IPC_RMID);
    _exit(0);
}

static void *sleep_once(void *unused) {
    long before = milliseconds(), result, woke;
    int error;

    (void)unused;
    errno = 0;
    result = sleep_in();
    error = result < 0 ? errno : 0;
    woke = milliseconds();
    // The tracer has seen everything that is printed.
    __sync_fetch_and_add(&awake, 1);
    do_work(1);
    printf("woke %ld %d %ld at %ld\n", result, error, woke - before, woke);
    fflush(stdout);
    return NULL;
}

int main(int argc, char **argv) {
    const char *call = argc > 1 ? argv[1] : "";
    long threads = argc > 2 ? atol(argv[2]) : 1;
    pthread_t others[16];
    pid_t self = getpid();

    if (argc > 3) timeout_ms = atol(argv[3]);
    duration = (struct timespec){timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

    make_ready();
    make_robust();
    helper = fork();
    if (helper == 0) help(self, call);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(call, calls[i].name) == 0) sleep_in = calls[i].sleep;
    if (!sleep_in || threads > 16) return 2;
    *started = milliseconds();
    printf("ready %d\n", (int)self);
    fflush(stdout);
    for (long i = 1; i < threads; i++) pthread_create(&others[i], NULL, sleep_once, NULL);
    sleep_once(NULL);
    for (long i = 1; i < threads; i++) pthread_join(others[i], NULL);
    printf("done\n");
    fflush(stdout);
    while (waitpid(helper, NULL, 0) < 0 && errno == EINTR) continue;
    kill(child, SIGKILL);
    return 0;
}
