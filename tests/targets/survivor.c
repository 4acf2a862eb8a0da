/*
 * survivor: threads that compute without pause, check every result, and live on whatever becomes of their tracer.
 *
 *     survivor THREADS [blocked N] [alone N] [handler] [ignore] [timer]
 *
 * blocked N: the first N threads block all signals. alone N: the next N block SIGTRAP, and no other. handler: a SIGTRAP
 * handler of its own, which must never be called. ignore: SIGTRAP is ignored. timer: a 1 kHz profiling timer.
 *
 * A line `signal` has a signal sent to every thread, whose handler waits for a line `release`: half of them spin, half
 * sleep. Every other one gets a second signal in there, on a stack of its own, whose handler waits, too. It is answered
 * by "in handlers" when all are there, and `release` by "released" when none is any more.
 *
 * Prints "ready PID". Each line on standard input, `check`, is answered by "right M" with all results so far, when
 * every thread has gone on by 1,000 rounds since. A wrong result is printed and ends it with status 3, a signal that is
 * not its own with 4. At the end of its input it leaves with status 0, where its signal actions and masks are as it set
 * them; 5 if not. An argument to a line is also what is waited for: `check 5000`.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "machine.h"

#define ALONE __attribute__((noinline, noclone))

enum { most_threads = 64 };

static atomic_int stop;
static atomic_long rounds[most_threads];
static atomic_long ticks;
static volatile long noted; /* to be watched: every thread writes to it */
static long threads, blocked, alone;

/* A call, a jump that depends on data, a push of one byte. */
ALONE long leaf(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

ALONE long do_work(long n) {
    long sum = 0;

    for (long i = 0; i < 4; i++) {
        sum += leaf(n + i);
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

/* A conditional branch whose both ways matter. */
ALONE long choose(long n) {
    long result;

#if defined(__x86_64__)
    __asm__ volatile(".globl choose_branch\n"
                     "test $1, %1\n"
                     "choose_branch: jz 1f\n"
                     "mov $7, %0\n"
                     "jmp 2f\n"
                     "1: mov $11, %0\n"
                     "2:"
                     : "=&r"(result)
                     : "r"(n)
                     : "cc");
#else
    __asm__ volatile(".globl choose_branch\n"
                     "choose_branch: tbz %1, #0, 1f\n"
                     "mov %0, #7\n"
                     "b 2f\n"
                     "1: mov %0, #11\n"
                     "2:"
                     : "=&r"(result)
                     : "r"(n));
#endif
    return result;
}

/* An instruction that sets the flags: popf, which is single-stepped; msr. */
ALONE long flags(long n) {
    long result;

#if defined(__x86_64__)
    __asm__ volatile(".globl flags_popf\n"
                     "sub $128, %%rsp\n"
                     "cmp $5, %1\n"
                     "pushf\n"
                     "cmp %%rsp, %%rsp\n"
                     "flags_popf: popf\n"
                     "setl %b0\n"
                     "movzbl %b0, %k0\n"
                     "lea 128(%%rsp), %%rsp\n"
                     : "=&q"(result)
                     : "r"(n)
                     : "cc", "memory");
#else
    __asm__ volatile(".globl flags_popf\n"
                     "cmp %1, #5\n"
                     "mrs x9, nzcv\n"
                     "cmp x9, x9\n"
                     "flags_popf: msr nzcv, x9\n"
                     "cset %0, lt\n"
                     : "=&r"(result)
                     : "r"(n)
                     : "x9", "cc", "memory");
#endif
    return result;
}

/* A call, and one through a table. */
ALONE long calls(long n) {
    static long (*const volatile table[])(long) = {NULL, leaf};
    long result;

#if defined(__x86_64__)
    __asm__ volatile(".globl calls_direct, calls_table\n"
                     "lea -136(%%rsp), %%rsp\n"
                     "calls_direct: call leaf\n"
                     "mov %%rax, %%rdi\n"
                     "calls_table: call *8(%2)\n"
                     "lea 136(%%rsp), %%rsp\n"
                     : "=&a"(result), "+D"(n)
                     : "b"(table)
                     : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "cc", "memory");
#else
    register long x0 __asm__("x0") = n;

    __asm__ volatile(".globl calls_direct, calls_table\n"
                     "calls_direct: bl leaf\n"
                     "ldr x9, [%1, #8]\n"
                     "calls_table: blr x9\n"
                     : "+r"(x0)
                     : "r"(table)
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
                       "x16", "x17", "x18", "x30", "cc", "memory");
    result = x0;
#endif
    return result;
}

/* A system call that is probed itself. */
ALONE long ask(void) {
#if defined(__x86_64__)
    long result = SYS_getppid;

    __asm__ volatile(".globl ask_syscall\n"
                     "ask_syscall: syscall"
                     : "+a"(result)
                     :
                     : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = SYS_getppid;
    register long result __asm__("x0");

    __asm__ volatile(".globl ask_syscall\n"
                     "ask_syscall: svc #0"
                     : "=r"(result)
                     : "r"(x8)
                     : "memory");
#endif
    return result;
}

/* All vector registers keep what they hold: which is whatever n says, lane by lane. */
ALONE long vectors(long n) {
    long lost;

#if defined(__x86_64__)
    __asm__ volatile("movq %1, %%xmm0\n"
                     "punpcklqdq %%xmm0, %%xmm0\n"
                     ".irp r,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
                     "movdqa %%xmm0, %%xmm\\r\n"
                     ".endr\n"
                     "mov $50, %0\n"
                     "1: dec %0\n"
                     "jnz 1b\n"
                     ".irp r,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
                     "pxor %%xmm0, %%xmm\\r\n"
                     "por %%xmm\\r, %%xmm1\n"
                     ".endr\n"
                     "movq %1, %%xmm2\n"
                     "punpcklqdq %%xmm2, %%xmm2\n"
                     "pxor %%xmm2, %%xmm0\n"
                     "por %%xmm0, %%xmm1\n"
                     "packsswb %%xmm1, %%xmm1\n"
                     "movq %%xmm1, %0\n"
                     : "=&r"(lost)
                     : "r"(n)
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#else
    __asm__ volatile("dup v0.2d, %1\n"
                     ".irp r,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
                     "mov v\\r\\().16b, v0.16b\n"
                     ".endr\n"
                     "mov %0, #50\n"
                     "1: sub %0, %0, #1\n"
                     "cbnz %0, 1b\n"
                     "eor v1.16b, v1.16b, v0.16b\n"
                     ".irp r,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
                     "eor v\\r\\().16b, v\\r\\().16b, v0.16b\n"
                     "orr v1.16b, v1.16b, v\\r\\().16b\n"
                     ".endr\n"
                     "dup v2.2d, %1\n"
                     "eor v0.16b, v0.16b, v2.16b\n"
                     "orr v1.16b, v1.16b, v0.16b\n"
                     "umaxv s1, v1.4s\n"
                     "fmov %w0, s1\n"
                     : "=&r"(lost)
                     : "r"(n)
                     : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
                       "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
                       "v29", "v30", "v31");
#endif
    return lost;
}

static void wrong(const char *what, long n, long got) {
    printf("wrong %s(%ld) = %ld\n", what, n, got);
    fflush(stdout);
    _exit(3);
}

static pthread_t ids[most_threads];
static _Thread_local long own_number;
static atomic_long in_first, in_second;
static volatile int released;
static int release_pipe[2];

/* In a handler: until it is released. */
static void wait_for_release(void) {
    char told;

    while (!released)
        if (own_number & 1 ? read(release_pipe[0], &told, 1) < -1 : sched_yield() < 0) _exit(6);
}

static void first(int sig) {
    (void)sig;
    in_first++;
    wait_for_release();
    in_first--;
}

static void second(int sig) {
    (void)sig;
    in_second++;
    wait_for_release();
    in_second--;
}

static int has_second(long thread) { return (thread & 2) != 0; }

static void make_stack(void) {
    stack_t stack = {.ss_size = 1 << 16};

    stack.ss_sp = malloc(stack.ss_size);
    sigaltstack(&stack, NULL);
}

static void catch_signals(void) {
    struct sigaction action = {.sa_handler = first};

    if (pipe(release_pipe) != 0) exit(7);
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = second;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
}

static void signal_all(void) {
    long seconds = 0;

    released = 0;
    for (long i = 0; i < threads; i++) pthread_kill(ids[i], SIGUSR1);
    while (in_first < threads) sched_yield();
    for (long i = 0; i < threads; i++)
        if (has_second(i)) {
            seconds++;
            pthread_kill(ids[i], SIGUSR2);
        }
    while (in_second < seconds) sched_yield();
    printf("in handlers\n");
    fflush(stdout);
}

static void release_all(void) {
    char many[2 * most_threads] = {0};

    released = 1;
    if (write(release_pipe[1], many, sizeof many) < 0) exit(7);
    while (in_first + in_second > 0) sched_yield();
    printf("released\n");
    fflush(stdout);
}

static int blocks(long thread, int sig) {
    if (thread < blocked) return 1;
    return thread < blocked + alone && sig == SIGTRAP;
}

static void *work(void *arg) {
    long me = (long)arg, parent = getppid();
    sigset_t own, now;

    sigemptyset(&own);
    for (int s = 1; s < 32; s++)
        if (blocks(me, s)) sigaddset(&own, s);
    pthread_sigmask(SIG_BLOCK, &own, NULL);
    own_number = me;
    make_stack();
    for (long n = me; !stop; n++) {
        long got;

        if ((got = do_work(n)) != 12 * n + 22) wrong("do_work", n, got);
        if ((got = choose(n)) != (n & 1 ? 7 : 11)) wrong("choose", n, got);
        if ((got = flags(n)) != (n < 5)) wrong("flags", n, got);
        if ((got = vectors(n)) != 0) wrong("vectors", n, got);
        if ((got = calls(n)) != 9 * n + 4) wrong("calls", n, got);
        if ((got = ask()) != parent && getppid() == parent) wrong("ask", n, got);
        noted = n;
        rounds[me]++;
    }
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    for (int s = 1; s < 32; s++) {
        if (s == SIGKILL || s == SIGSTOP) continue;
        if (sigismember(&now, s) != blocks(me, s)) {
            printf("thread %ld: signal %d %s\n", me, s, blocks(me, s) ? "is not blocked" : "is blocked");
            fflush(stdout);
            return (void *)1;
        }
    }
    return NULL;
}

static void unexpected(int sig, siginfo_t *info, void *context) {
    ucontext_t *at = context;
    char text[128];
    int length = snprintf(text, sizeof text, "unexpected signal %d code %d pc %llx flags %llx, flags() at %lx\n", sig,
                          info->si_code, (unsigned long long)PC_OF(at), (unsigned long long)FLAGS_OF(at), (long)flags);
    ssize_t put = write(1, text, (size_t)length);

    _exit(put > 0 ? 4 : sig);
}

static void tick(int sig) {
    (void)sig;
    ticks++;
}

static void start_timer(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval each = {{0, 1000}, {0, 1000}};

    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &each, NULL);
}

static void check(long more) {
    long before[most_threads], sum = 0;

    for (long i = 0; i < threads; i++) before[i] = rounds[i];
    for (long i = 0; i < threads; i++) {
        while (rounds[i] < before[i] + more) sched_yield();
        sum += rounds[i];
    }
    printf("right %ld\n", sum);
    fflush(stdout);
}

int main(int argc, char **argv) {
    struct sigaction now;
    struct sigaction own = {.sa_sigaction = unexpected, .sa_flags = SA_SIGINFO};
    void (*expected)(int) = SIG_DFL;
    char line[64];
    int failed = 0;
    void *bad;

    threads = argc > 1 ? atol(argv[1]) : 1;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "blocked") == 0) blocked = atol(argv[++i]);
        if (strcmp(argv[i], "alone") == 0) alone = atol(argv[++i]);
        if (strcmp(argv[i], "handler") == 0) {
            sigaction(SIGTRAP, &own, NULL);
            expected = own.sa_handler;
        }
        if (strcmp(argv[i], "ignore") == 0) signal(SIGTRAP, expected = SIG_IGN);
        if (strcmp(argv[i], "timer") == 0) start_timer();
    }
    catch_signals();
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, (void *)i);
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long more = 1000;

        if (strcmp(line, "signal\n") == 0) {
            signal_all();
        } else if (strcmp(line, "release\n") == 0) {
            release_all();
        } else {
            sscanf(line, "%*s %ld", &more);
            check(more);
        }
    }
    stop = 1;
    for (long i = 0; i < threads; i++) {
        pthread_join(ids[i], &bad);
        failed |= bad != NULL;
    }
    sigaction(SIGTRAP, NULL, &now);
    if (now.sa_handler != expected) {
        printf("the action for SIGTRAP is %p\n", (void *)now.sa_handler);
        fflush(stdout);
        failed = 1;
    }
    return failed ? 5 : 0;
}
