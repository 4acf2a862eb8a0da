/*
 * masks: threads that block SIGTRAP, with a few other signals or without, by all that sets masks, and look at what is
 * blocked after each call of a function that is to be probed.
 *
 * Its first thread blocks SIGTRAP, unless it is given an argument. Prints "ready PID" and obeys lines on standard
 * input, `WHAT N`:
 *
 *     set N      four threads that choose masks at random N times each, of SIGTRAP, SIGUSR1 and SIGUSR2, by
 *                pthread_sigmask, sigprocmask or siglongjmp, and call hit() with them; every tenth time in a handler,
 *                in a new thread or in a child, too.  "set N hits H bad B": H without those of children, B with them
 *
 *     forks N    N children, while another thread that blocks all signals calls hit(): what they have for SIGTRAP
 *                before they come by a trap.  "forks N caught C", C of them a handler
 *
 *     ways N     the first thread N times by each of what no library function shows: a system call of its own,
 *                swapcontext, a handler's sa_mask, and a mask that it gets as it is born.  "ways N hits H bad B"
 *
 *     open N     the first thread N times: blocks all signals and calls hit(), opens them and calls it again, all by
 *                library functions and by a handler's sa_mask; then, while another thread that blocks all signals
 *                calls it.  "open N hits H bad B"
 *
 * bad: a mask that is not as the program set it. At the end of its input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { threads = 4 };

static atomic_long hits, bad;

/* Sets have a bit a signal, from bit 0 for signal 1. */
typedef unsigned long set_t;

static set_t bit(int sig) { return 1ul << (sig - 1); }

__attribute__((noinline)) void hit(void) { __asm__ volatile("" ::: "memory"); }

/* Asked of the kernel, so that nobody sees it. */
static set_t blocked_now(void) {
    set_t now = 0;

    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &now, sizeof now);
    return now;
}

static long wrong(set_t expected) { return blocked_now() != expected; }

static void hit_and_look(set_t expected) {
    for (int i = 0; i < 3; i++) {
        hit();
        hits++;
        bad += wrong(expected);
    }
}

static _Thread_local set_t mask;

static void set_mask(int how, set_t set) {
    sigset_t of_libc;

    sigemptyset(&of_libc);
    for (int sig = 1; sig < 32; sig++)
        if (set & bit(sig)) sigaddset(&of_libc, sig);
    if (how == SIG_SETMASK && set % 2 == 0)
        sigprocmask(how, &of_libc, NULL);
    else
        pthread_sigmask(how, &of_libc, NULL);
    mask = how == SIG_BLOCK ? mask | set : how == SIG_UNBLOCK ? mask & ~set : set;
}

static void on_chld(int sig) {
    (void)sig;
    hit_and_look(blocked_now()); /* it may come while a mask is being set */
}

/* Of a new thread or child the mask is known when its maker goes on. */
struct birth {
    set_t mask;
    int told[2];
};

static void wait_for_maker(const struct birth *birth) {
    char byte;

    if (read(birth->told[0], &byte, 1) != 1) exit(1);
}

static void go_on(const struct birth *birth) {
    if (write(birth->told[1], "", 1) != 1) exit(1);
}

static void *in_new_thread(void *given) {
    const struct birth *birth = given;

    mask = birth->mask;
    wait_for_maker(birth);
    hit_and_look(mask);
    return NULL;
}

static void make_thread(const struct birth *birth) {
    pthread_t made;

    if (pthread_create(&made, NULL, in_new_thread, (void *)birth) != 0) exit(1);
    go_on(birth);
    pthread_join(made, NULL);
}

static void make_child(const struct birth *birth) {
    long found = 0;
    int status;
    pid_t child = fork();

    if (child == 0) {
        wait_for_maker(birth);
        for (int i = 0; i < 3; i++) {
            hit();
            found |= wrong(mask);
        }
        _exit((int)found);
    }
    go_on(birth);
    waitpid(child, &status, 0);
    bad += status != 0;
}

/* With a mask that is of no interest, back to the one before. */
static void jump_back(set_t other) {
    sigjmp_buf back;
    const set_t before = mask;

    if (sigsetjmp(back, 1) == 0) {
        set_mask(SIG_SETMASK, other);
        hit_and_look(mask);
        siglongjmp(back, 1);
    }
    mask = before;
}

static set_t random_set(unsigned *seed) {
    const int r = rand_r(seed);

    return (r & 16 ? bit(SIGTRAP) : 0) | (r & 32 ? bit(SIGUSR1) : 0) | (r & 64 ? bit(SIGUSR2) : 0);
}

static long rounds;

static void *set_at_random(void *number) {
    static const int hows[] = {SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK};
    unsigned seed = (unsigned)(long)number + 1;
    struct birth birth;

    if (pipe(birth.told) != 0) exit(1);
    mask = blocked_now();
    for (long i = 0; i < rounds; i++) {
        set_mask(hows[rand_r(&seed) / 8 % 3], random_set(&seed));
        hit_and_look(mask);
        if (i % 10 == 2) jump_back(random_set(&seed));
        if (i % 10 == 4) pthread_kill(pthread_self(), SIGCHLD);
        birth.mask = mask;
        if (i % 10 == 6) make_thread(&birth);
        if (i % 10 == 8) make_child(&birth);
        hit_and_look(mask);
    }
    set_mask(SIG_SETMASK, 0);
    close(birth.told[0]);
    close(birth.told[1]);
    return NULL;
}

static void set_all(void) {
    pthread_t ids[threads];
    struct sigaction action = {.sa_handler = on_chld, .sa_flags = SA_RESTART};

    sigaction(SIGCHLD, &action, NULL);
    hits = bad = 0;
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, set_at_random, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    printf("set %ld hits %ld bad %ld\n", rounds, (long)hits, (long)bad);
}

static void set_mask_by_call(set_t set) {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &set, NULL, sizeof set);
    mask = set;
}

static ucontext_t inside, outside;

static void in_context(void) {
    for (;;) {
        hit_and_look(bit(SIGTRAP));
        swapcontext(&inside, &outside);
    }
}

static void on_usr1(int sig) {
    (void)sig;
    hit_and_look(bit(SIGTRAP) | bit(SIGUSR1));
}

static void *with_attribute(void *unused) {
    (void)unused;
    hit_and_look(bit(SIGTRAP));
    return NULL;
}

static void set_by_all_ways(void) {
    static char stack[65536];
    struct sigaction action = {.sa_handler = on_usr1};
    pthread_attr_t attribute;
    pthread_t made;
    sigset_t traps;

    sigemptyset(&traps);
    sigaddset(&traps, SIGTRAP);
    sigaddset(&action.sa_mask, SIGTRAP);
    sigaction(SIGUSR1, &action, NULL);
    pthread_attr_init(&attribute);
    pthread_attr_setsigmask_np(&attribute, &traps);
    getcontext(&inside);
    inside.uc_sigmask = traps;
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    makecontext(&inside, in_context, 0);
    hits = bad = 0;
    for (long i = 0; i < rounds; i++) {
        set_mask_by_call(bit(SIGTRAP));
        hit_and_look(mask);
        set_mask_by_call(0);
        hit_and_look(mask);
        swapcontext(&outside, &inside);
        hit_and_look(0);
        raise(SIGUSR1);
        hit_and_look(0);
        pthread_create(&made, &attribute, with_attribute, NULL);
        pthread_join(made, NULL);
        hit_and_look(0);
    }
    printf("ways %ld hits %ld bad %ld\n", rounds, (long)hits, (long)bad);
}

static volatile int stop;

static void *hit_blocked(void *unused) {
    sigset_t all;

    (void)unused;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!stop) hit();
    return NULL;
}

static atomic_long hits_of_other;

static void *hit_blocked_and_count(void *unused) {
    sigset_t all;

    (void)unused;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!stop) {
        hit();
        hits_of_other++;
    }
    return NULL;
}

static void on_usr2(int sig) {
    (void)sig;
    hit();
    hits++;
}

static void stay_open(void) {
    struct sigaction action = {.sa_handler = on_usr2};
    sigset_t all, before;
    pthread_t other;

    sigfillset(&all);
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR2, &action, NULL);
    hits = bad = hits_of_other = stop = 0;
    for (long i = 0; i < 2 * rounds; i++) {
        if (i == rounds) pthread_create(&other, NULL, hit_blocked_and_count, NULL);
        sigprocmask(SIG_BLOCK, &all, &before);
        hit();
        hits++;
        sigprocmask(SIG_SETMASK, &before, NULL);
        hit_and_look(0);
        if (i % 8 == 0) raise(SIGUSR2);
        hit_and_look(0);
    }
    stop = 1;
    pthread_join(other, NULL);
    printf("open %ld hits %ld bad %ld\n", rounds, hits + hits_of_other, (long)bad);
}

/* Asked of the kernel, whose struct begins with the handler. */
static int catches_traps(void) {
    unsigned long action[4] = {0};

    syscall(SYS_rt_sigaction, SIGTRAP, NULL, action, sizeof(set_t));
    return action[0] > 1;
}

static void fork_all(void) {
    long caught = 0;
    int status;
    pthread_t other;

    stop = 0;
    pthread_create(&other, NULL, hit_blocked, NULL);
    for (long i = 0; i < rounds; i++) {
        const pid_t child = (pid_t)syscall(SYS_fork);

        if (child == 0) _exit(catches_traps());
        waitpid(child, &status, 0);
        caught += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    }
    stop = 1;
    pthread_join(other, NULL);
    printf("forks %ld caught %ld\n", rounds, caught);
}

int main(int argc, char **argv) {
    char line[64], what[16];

    (void)argv;
    if (argc == 1) set_mask(SIG_BLOCK, bit(SIGTRAP));
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        rounds = 0;
        sscanf(line, "%15s %ld", what, &rounds);
        if (strcmp(what, "forks") == 0)
            fork_all();
        else if (strcmp(what, "ways") == 0)
            set_by_all_ways();
        else if (strcmp(what, "open") == 0)
            stay_open();
        else
            set_all();
        fflush(stdout);
    }
    return 0;
}
