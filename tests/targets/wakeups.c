/*
 * wakeups: a thread that waits for events of a descriptor, or for another one's death.
 *
 * Prints "ready PID" and reads lines `WHAT N`; each is answered by "WHAT good G made M": how many of N rounds went as
 * they should, and how many system calls were made from call_site (with x86-64). WHAT:
 *
 *     eventfd    a thread writes numbers, another reads them: none is lost, none read twice
 *     signalfd   a process queues signals with the values 1, 2, 3 …, read in that order
 *     timerfd    reads of a 1 kHz timer: as many expirations as time has passed
 *     poll       the same by poll, with reads that do not wait
 *     robust     a thread ends in die_here (by turns by pthread_exit and by exit(2)) with a robust mutex, while another
 *                waits for it and gets EOWNERDEAD
 *     inherit    the same with a mutex that inherits priorities
 *     process    a child process is killed in die_here with a mutex that it shares
 *
 * At the end of its input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { tick_ns = 1000000 };

static atomic_long made;

__attribute__((noinline)) long make_call(long number, long a, long b, long c) {
    long result;

    made++;
#if defined(__x86_64__)
    __asm__ volatile(".globl call_site\n"
                     "call_site: syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
#else
    result = syscall(number, a, b, c);
#endif
    return result;
}

#if defined(SYS_poll)
static long wait_for(struct pollfd *wanted) { return make_call(SYS_poll, (long)wanted, 1, -1); }
#else
static long wait_for(struct pollfd *wanted) { return syscall(SYS_ppoll, wanted, 1, NULL, NULL, 0); }
#endif
static long read_into(int fd, void *data, long size) { return make_call(SYS_read, fd, (long)data, size); }

/* eventfd */

static int events;

static void *write_numbers(void *rounds) {
    for (long i = 1; i <= (long)rounds; i++)
        if (make_call(SYS_write, events, (long)&i, sizeof(i)) != sizeof(i)) return NULL;
    return NULL;
}

static long by_eventfd(long rounds) {
    long sum = 0, wanted = rounds * (rounds + 1) / 2, number;
    pthread_t writer;

    events = eventfd(0, 0);
    pthread_create(&writer, NULL, write_numbers, (void *)rounds);
    while (sum < wanted && read_into(events, &number, sizeof(number)) == sizeof(number)) sum += number;
    pthread_join(writer, NULL);
    close(events);
    return sum == wanted ? rounds : 0;
}

/* signalfd */

static void queue_signals(pid_t to, long rounds) {
    union sigval value = {0};

    while (value.sival_int < rounds) {
        value.sival_int++;
        while (sigqueue(to, SIGRTMIN, value) != 0) sched_yield();
    }
    _exit(0);
}

static long by_signalfd(long rounds) {
    struct signalfd_siginfo told;
    pid_t self = getpid(), sender;
    sigset_t queued;
    long good = 0;
    int signals;

    sigemptyset(&queued);
    sigaddset(&queued, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &queued, NULL);
    signals = signalfd(-1, &queued, 0);
    sender = fork();
    if (sender == 0) queue_signals(self, rounds);
    for (long i = 1; i <= rounds; i++) {
        if (read_into(signals, &told, sizeof(told)) != sizeof(told)) break;
        good += told.ssi_int == i && told.ssi_pid == (unsigned)sender && told.ssi_code == SI_QUEUE;
    }
    waitpid(sender, NULL, 0);
    close(signals);
    return good;
}

/* timerfd */

static long now_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* Expirations are read once, and neither early nor late: so many as time has passed since the timer was set. */
static long read_timer(int flags, long rounds) {
    struct itimerspec each = {{0, tick_ns}, {0, tick_ns}};
    int timer = timerfd_create(CLOCK_MONOTONIC, flags);
    struct pollfd wanted = {timer, POLLIN, 0};
    long set_after, set_before = now_ns(), expired = 0, good = 0;

    timerfd_settime(timer, 0, &each, NULL);
    set_after = now_ns();
    for (long i = 0; i < rounds; i++) {
        long number, before, after;

        if (flags && wait_for(&wanted) != 1) break;
        before = now_ns();
        if (read_into(timer, &number, sizeof(number)) != sizeof(number) || number < 1) break;
        after = now_ns();
        expired += number;
        good += expired <= (after - set_before) / tick_ns && expired >= (before - set_after) / tick_ns;
    }
    close(timer);
    return good;
}

static long by_timerfd(long rounds) { return read_timer(0, rounds); }
static long by_poll(long rounds) { return read_timer(TFD_NONBLOCK, rounds); }

/* mutexes whose owners die */

static pthread_mutex_t *mutex; /* in shared memory */
static pthread_barrier_t owned;
static int in_process;

__attribute__((noinline)) void die_here(long round) {
    if (in_process)
        make_call(SYS_kill, getpid(), SIGKILL, 0);
    else if (round % 2 == 0)
        make_call(SYS_exit, 0, 0, 0);
    pthread_exit(NULL);
}

static void *own_and_die(void *round) {
    pthread_mutex_lock(mutex);
    pthread_barrier_wait(&owned);
    die_here((long)round);
    return NULL;
}

static void make_mutex(int shared, int protocol) {
    pthread_mutexattr_t kind;

    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setprotocol(&kind, protocol);
    pthread_mutexattr_setpshared(&kind, shared);
    pthread_mutex_init(mutex, &kind);
    pthread_barrier_init(&owned, NULL, 2);
}

static int inherits_it(void) {
    return pthread_mutex_lock(mutex) == EOWNERDEAD && pthread_mutex_consistent(mutex) == 0 &&
           pthread_mutex_unlock(mutex) == 0;
}

static long by_threads(int protocol, long rounds) {
    long good = 0;

    make_mutex(PTHREAD_PROCESS_PRIVATE, protocol);
    for (long i = 0; i < rounds; i++) {
        pthread_t owner;

        pthread_create(&owner, NULL, own_and_die, (void *)i);
        pthread_barrier_wait(&owned);
        good += inherits_it();
        pthread_join(owner, NULL);
    }
    return good;
}

static long by_robust(long rounds) { return by_threads(PTHREAD_PRIO_NONE, rounds); }
static long by_inherit(long rounds) { return by_threads(PTHREAD_PRIO_INHERIT, rounds); }

static void own_and_be_killed(int ready, long round) {
    in_process = 1;
    pthread_mutex_lock(mutex);
    if (write(ready, "x", 1) != 1) _exit(1);
    die_here(round);
}

static long by_process(long rounds) {
    long good = 0;
    int ready[2];

    make_mutex(PTHREAD_PROCESS_SHARED, PTHREAD_PRIO_NONE);
    if (pipe(ready) != 0) return -1;
    for (long i = 0; i < rounds; i++) {
        int status = 0;
        pid_t owner;
        char byte;

        owner = fork();
        if (owner == 0) own_and_be_killed(ready[1], i);
        if (read(ready[0], &byte, 1) != 1) break;
        good += inherits_it();
        waitpid(owner, &status, 0);
        good -= !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL;
    }
    close(ready[0]);
    close(ready[1]);
    return good;
}

static const struct {
    const char *name;
    long (*run)(long rounds);
} all[] = {
    {"eventfd", by_eventfd}, {"signalfd", by_signalfd}, {"timerfd", by_timerfd}, {"poll", by_poll},
    {"robust", by_robust},   {"inherit", by_inherit},   {"process", by_process},
};

int main(void) {
    char line[64], what[32];
    long rounds;

    mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) && sscanf(line, "%31s %ld", what, &rounds) == 2) {
        made = 0;
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
            if (strcmp(what, all[i].name) != 0) continue;
            long good = all[i].run(rounds);

            printf("%s good %ld made %ld\n", what, good, (long)made);
        }
        fflush(stdout);
    }
    return 0;
}
