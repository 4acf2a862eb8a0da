/*
 * blocked: instructions that fault, handlers of the program's own for faults, traps and queued signals, and what they
 * see of the masks.
 *
 * Prints "ready PID" and obeys lines on standard input, `WHAT N`:
 *
 *     retry N    N loads at fault_load, each of which faults once: the handler makes the memory readable, and the load
 *                is run again. All signals but SIGSEGV are blocked.  "retry loads N faults F bad B"
 *     fault N    loads at fault_load, each of which faults once, until N real-time signals have come, which a child
 *                queues one by one.  "fault loads L faults F signals N bad B"
 *     leave N    N loads at fault_load, each of which faults once: the handler mends it, goes on behind the load, or
 *                leaves by siglongjmp, by turns; every other three times on a stack of its own.
 *                "leave loads N faults F bad B"
 *     traps N    a breakpoint, N times; the handler calls in_handler(), with a short instruction at handler_byte.
 *                "traps N handled H calls C bad B"
 *
 *     memory N   blocks SIGBUS, as if it reported an error of the memory, of which N come: "waiting N"; at the next
 *                line it is open.  "memory N handled T"
 *
 * bad: a mask that is not as the program set it, an address or a sender that is not the true one. At the end of its
 * input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "machine.h"

enum { page_size = 4096 };

extern char fault_load[], own_trap[];

static struct { atomic_long round, sent; } * shared;
static char *page;
static volatile long faults, got, bad;
static atomic_long handled, handler_calls, bad_traps;
static volatile int all_blocked;
static pid_t sender;

/* One load, at an address that is known. */
__attribute__((noinline)) long load(const char *from) {
    long value;

    __asm__ volatile(".globl fault_load\n"
                     "fault_load: " LOAD("%0", "%1")
                     : "=&r"(value)
                     : "r"(from)
                     : "memory");
    return value;
}

__attribute__((noinline)) long in_handler(long n) {
#if defined(__x86_64__)
    __asm__ volatile(".globl handler_byte\n"
                     "mov %0, %%rax\n"
                     "handler_byte: cltq"
                     :
                     : "r"(n)
                     : "rax");
#else
    __asm__ volatile(".globl handler_byte\nhandler_byte: sxtw x9, %w0" : : "r"(n) : "x9");
#endif
    return n + 1;
}

static int is_blocked(int sig) {
    sigset_t now;

    pthread_sigmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, sig);
}

static void on_fault(int sig, siginfo_t *info, void *context) {
    ucontext_t *at = context;

    (void)sig;
    faults++;
    if (info->si_addr != page || PC_OF(at) != (greg_t)fault_load) bad++;
    if (sigismember(&at->uc_sigmask, SIGTRAP) != all_blocked) bad++;
    mprotect(page, page_size, PROT_READ);
}

static void catch_faults(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    sigfillset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    faults = got = bad = 0;
}

static void retry(long times) {
    sigset_t all, before;

    catch_faults();
    load(page + page_size); /* a hit with nothing blocked: the masks of the next few are not looked at */
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    for (long i = 0; i < times; i++) {
        mprotect(page, page_size, PROT_NONE);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        all_blocked = 1;
        load(page);
        if (!is_blocked(SIGTRAP)) bad++;
        all_blocked = 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        load(page + page_size);
    }
    printf("retry loads %ld faults %ld bad %ld\n", 1 + 2 * times, faults, bad);
}

static sigjmp_buf out;
static volatile long turn;

static void on_fault_by_turns(int sig, siginfo_t *info, void *context) {
    ucontext_t *at = context;

    (void)sig;
    faults++;
    if (info->si_addr != page || PC_OF(at) != (greg_t)fault_load) bad++;
    if (turn % 3 == 0) mprotect(page, page_size, PROT_READ);
    if (turn % 3 == 1) PC_OF(at) += load_size;
    if (turn % 3 == 2) siglongjmp(out, 1);
}

static void leave(long times) {
    static char room[65536];
    const stack_t own = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_sigaction = on_fault_by_turns, .sa_flags = SA_SIGINFO};

    sigaltstack(&own, NULL);
    faults = bad = 0;
    for (turn = 0; turn < times; turn++) {
        action.sa_flags = SA_SIGINFO | (turn / 3 % 2 ? SA_ONSTACK : 0);
        sigaction(SIGSEGV, &action, NULL);
        mprotect(page, page_size, PROT_NONE);
        if (sigsetjmp(out, 1) == 0) load(page);
    }
    printf("leave loads %ld faults %ld bad %ld\n", times, faults, bad);
}

static void on_queued(int sig, siginfo_t *info, void *context) {
    (void)sig;
    (void)context;
    got++;
    if (info->si_code != SI_QUEUE || info->si_pid != sender || info->si_value.sival_int != got) bad++;
}

static void send_one_a_round(pid_t to, long times) {
    union sigval value = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (long sent = 1; sent <= times; sent++) {
        while (shared->round < sent) sched_yield();
        for (volatile long i = 0; i < sent * 7 % 2000; i++) continue;
        value.sival_int = (int)sent;
        while (sigqueue(to, SIGRTMIN, value) != 0) sched_yield();
        shared->sent = sent;
    }
    _exit(0);
}

static void fault(long times) {
    struct sigaction action = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO};
    pid_t self = getpid();
    long loads = 0;

    catch_faults();
    sigaction(SIGRTMIN, &action, NULL);
    shared->round = shared->sent = 0;
    sender = fork();
    if (sender == 0) send_one_a_round(self, times);
    for (long i = 1; i <= times; i++) {
        shared->round = i;
        do {
            mprotect(page, page_size, PROT_NONE);
            load(page);
            loads++;
        } while (got < i);
    }
    waitpid(sender, NULL, 0);
    printf("fault loads %ld faults %ld signals %ld bad %ld\n", loads, faults, got, bad);
}

static void on_trap(int sig, siginfo_t *info, void *context) {
    ucontext_t *at = context;

    (void)sig;
    (void)info;
    handled++;
    if (PC_OF(at) != (greg_t)own_trap + trap_pc || sigismember(&at->uc_sigmask, SIGTRAP)) bad_traps++;
    PC_OF(at) += trap_rest;
    for (long i = 0; i < 3; i++) {
        in_handler(i);
        handler_calls++;
    }
}

__attribute__((noinline)) static void run_trap(void) { __asm__ volatile(".globl own_trap\nown_trap: " TRAP); }

static void traps(long times) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO}, now;

    sigaction(SIGTRAP, &action, NULL);
    handled = handler_calls = bad_traps = 0;
    for (long i = 0; i < times; i++) {
        run_trap();
        if (is_blocked(SIGTRAP)) bad_traps++;
    }
    sigaction(SIGTRAP, NULL, &now);
    if (now.sa_sigaction != on_trap) bad_traps++;
    printf("traps %ld handled %ld calls %ld bad %ld\n", times, handled, handler_calls, bad_traps);
}

static volatile long memory_errors;

static void on_memory_error(int sig, siginfo_t *info, void *context) {
    (void)sig;
    (void)context;
    if (info->si_code == BUS_MCEERR_AO) memory_errors++;
}

static void memory(long errors) {
    struct sigaction action = {.sa_sigaction = on_memory_error, .sa_flags = SA_SIGINFO};
    siginfo_t info = {.si_signo = SIGBUS, .si_code = BUS_MCEERR_AO};
    sigset_t bus;
    char line[64];

    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    sigaction(SIGBUS, &action, NULL);
    sigprocmask(SIG_BLOCK, &bus, NULL);
    for (long i = 0; i < errors; i++) syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGBUS, &info);
    printf("waiting %ld\n", errors);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) exit(5);
    sigprocmask(SIG_UNBLOCK, &bus, NULL);
    printf("memory %ld handled %ld\n", errors, memory_errors);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    char line[64];

    shared = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    page = mmap(NULL, 2 * page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGTRAP, &action, NULL); /* before somebody attaches, and installs one where there is none */
    setvbuf(stdin, NULL, _IONBF, 0);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long number = strchr(line, ' ') ? atol(strchr(line, ' ')) : 0;

        if (strncmp(line, "retry", 5) == 0) retry(number);
        if (strncmp(line, "fault", 5) == 0) fault(number);
        if (strncmp(line, "leave", 5) == 0) leave(number);
        if (strncmp(line, "traps", 5) == 0) traps(number);
        if (strncmp(line, "memory", 6) == 0) memory(number);
        fflush(stdout);
    }
    return 0;
}
