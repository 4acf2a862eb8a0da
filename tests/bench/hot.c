// hot: the target of the benchmarks. It owns the functions that are probed, a twin that never is, and the truth about
// them: it measures itself, and says on standard output what it found.
//
// usage: hot [-t THREADS] [-i IDLE] [-b BUSY] [-s | -l LIBRARY -f FUNCTION]
//   -t THREADS   threads that make calls (default 1)
//   -i IDLE      threads that sleep all the time (default 0)
//   -b BUSY      threads that keep the processors busy all the time, and call nothing (default 0)
//   -s           what `go` calls is `stepped`, instead of work
//   -l, -f       what `go` and `beat` call is FUNCTION of LIBRARY, instead of work
//
// It prints "ready", then reads commands, a line each, until its input ends:
//   go N         each thread calls work N times   → "went calls C wall NS": all calls, ns from the first to the last
//   burst N      the same with a pause behind each 1000 calls, which counts for nothing
//   twin N       the same with the unprobed twin
//   stamp N      the same with one that reads the time stamp counter
//   detour N     the same with one that a detour by hand counts
//   take NAME N  calls NAME (take_200ns, …) N times → "took NAME calls N ns MEDIAN": the median of what each has
//                measured itself and returned, between the probed functions that it calls
//   beat         calls work once a millisecond until its input ends
//
// Invariant: between commands no thread of it is in a probed function.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BURST = 1000, MAX_THREADS = 64, MAX_SAMPLES = 100000, IDLE_STACK = 65536, TICKS = 8 };

struct request {
    long id;
    int op;
};

typedef long probed(long n, const char *name, struct request *request);

/// Calls f(i, name, request) for i = n … 1 and returns the sum. By hand, so that what follows the call is known to
/// floor.c: `add %rax, %r14`.
long repeat(probed *f, long n, const char *name, struct request *request);
__asm__(".text\n.globl repeat\n.type repeat, @function\n"
        "repeat:\n"
        "  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rdi, %r12\n  mov %rsi, %rbx\n  mov %rdx, %r13\n  mov %rcx, %r15\n  xor %r14d, %r14d\n"
        "1: test %rbx, %rbx\n  jz 2f\n"
        "  mov %rbx, %rdi\n  mov %r13, %rsi\n  mov %r15, %rdx\n  call *%r12\n"
        "  add %rax, %r14\n  dec %rbx\n  jmp 1b\n"
        "2: mov %r14, %rax\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  ret\n"
        ".size repeat, .-repeat\n");

// Both keep rbx, so that they begin with a push, as most functions do.
__attribute__((noinline, noclone)) long work(long n, const char *name, struct request *request) {
    __asm__ volatile("" : : "r"(name), "r"(request) : "memory", "rbx");
    return n * 3 + 1;
}

/// Its second instruction, popf, cannot run from a copy that jumps back: it must be stepped.
long stepped(long n, const char *name, struct request *request);
__asm__(".text\n.globl stepped\n.type stepped, @function\n"
        "stepped:\n  pushf\n  popf\n  lea 1(%rdi,%rdi,2), %rax\n  ret\n"
        ".size stepped, .-stepped\n");

__attribute__((noinline, noclone)) long twin(long n, const char *name, struct request *request) {
    __asm__ volatile("" : : "r"(name), "r"(request) : "memory", "rbx");
    return n * 5 + 1;
}

/// The twin with a time stamp of its own.
__attribute__((noinline, noclone)) long stamped(long n, const char *name, struct request *request) {
    static volatile unsigned long stamp;
    stamp = __builtin_ia32_rdtsc();
    __asm__ volatile("" : : "r"(name), "r"(request) : "memory", "rbx");
    return n * 5 + 1;
}

/// The twin with a detour made by hand: it counts its calls, a counter a thread, and knows that no flag is needed.
__attribute__((used)) static __thread long detour_hits;
long detoured(long n, const char *name, struct request *request);
__asm__(".text\n.globl detoured\n.type detoured, @function\n"
        "detoured:\n  jmp 2f\n"
        "1: lea 1(%rdi,%rdi,4), %rax\n  pop %rbx\n  ret\n"
        "2: incq %fs:detour_hits@tpoff\n  push %rbx\n  jmp 1b\n"
        ".size detoured, .-detoured\n");

static long now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

// Functions that take a known time: a busy loop of as many turns as it takes, found out at start. The name says what it
// takes when nothing disturbs it; each call measures its true duration from within, traced or not.

static double turns_per_ns;
static double own_ns;     // what the function that runs, or ran last, has found for itself
static double reading_ns; // what one look at the clock takes

__attribute__((noinline, noclone)) void tick(void) { __asm__ volatile("" : : : "memory"); }

static inline void spin(double ns) {
    for (long turns = (long)(ns * turns_per_ns); turns > 0; turns--) __asm__ volatile("" : "+r"(turns));
}

static inline void timed_spin(double ns) {
    long start = now_ns();
    spin(ns);
    own_ns += (double)(now_ns() - start) + reading_ns;
}

#define TAKES(name, ns)                                                                                                \
    __attribute__((noinline, noclone)) long take_##name(void) {                                                        \
        own_ns = 0;                                                                                                    \
        timed_spin(ns);                                                                                                \
        return (long)own_ns;                                                                                           \
    }                                                                                                                  \
    __attribute__((noinline, noclone)) long with_ticks_##name(void) {                                                  \
        own_ns = 0;                                                                                                    \
        for (int i = 0; i < TICKS; i++) {                                                                              \
            timed_spin((double)(ns) / TICKS);                                                                          \
            tick();                                                                                                    \
        }                                                                                                              \
        return (long)own_ns;                                                                                           \
    }
TAKES(200ns, 200)
TAKES(2us, 2000)
TAKES(50us, 50000)
TAKES(5ms, 5000000)

static const struct {
    const char *name;
    long (*call)(void);
} takers[] = {
    {"take_200ns", take_200ns},
    {"take_2us", take_2us},
    {"take_50us", take_50us},
    {"take_5ms", take_5ms},
    {"with_ticks_200ns", with_ticks_200ns},
    {"with_ticks_2us", with_ticks_2us},
    {"with_ticks_50us", with_ticks_50us},
    {"with_ticks_5ms", with_ticks_5ms},
};

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *samples, int n) {
    qsort(samples, (size_t)n, sizeof *samples, by_value);
    return samples[n / 2];
}

/// The fastest of many short spins: a disturbance only makes them slower.
static void calibrate(void) {
    enum { TURNS = 100000, ROUNDS = 200 };
    double best = 1e18;
    turns_per_ns = 1;
    for (int i = 0; i < ROUNDS; i++) {
        long start = now_ns();
        spin(TURNS);
        double took = (double)(now_ns() - start);
        if (took < best) best = took;
    }
    turns_per_ns = TURNS / best;
    double clock[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        long start = now_ns();
        clock[i] = (double)(now_ns() - start);
    }
    reading_ns = median(clock, ROUNDS);
}

static void take(const char *name, int n) {
    static double samples[MAX_SAMPLES];
    if (n < 1 || n > MAX_SAMPLES) n = MAX_SAMPLES;
    for (size_t t = 0; t < sizeof takers / sizeof *takers; t++) {
        if (strcmp(takers[t].name, name) != 0) continue;
        for (int i = 0; i < n; i++) {
            samples[i] = (double)takers[t].call();
        }
        printf("took %s calls %d ns %.0f\n", name, n, median(samples, n));
        return;
    }
    printf("took nothing\n");
}

// Threads that make calls, all at once.

static int threads = 1, idle, busy;
static pthread_barrier_t barrier;
static probed *called = work;
static probed *now_called;
static long calls_each;
static volatile long sink;

static void make_calls(void) {
    struct request request = {7, 2};
    sink += repeat(now_called, calls_each, "alice", &request);
}

static void *worker(void *unused) {
    for (;;) {
        pthread_barrier_wait(&barrier);
        make_calls();
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

static void *sleeper(void *unused) {
    for (;;) pause();
    return unused;
}

static void *burner(void *unused) {
    for (;;) __asm__ volatile("" : : : "memory");
    return unused;
}

static void start_others(int count, void *(*run)(void *), const pthread_attr_t *attributes) {
    pthread_t id;
    for (int i = 0; i < count; i++)
        if (pthread_create(&id, attributes, run, NULL) != 0) {
            fprintf(stderr, "hot: cannot start %d threads\n", count);
            exit(1);
        }
}

static void start_threads(void) {
    pthread_attr_t small;
    pthread_t id;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, IDLE_STACK);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) pthread_create(&id, &small, worker, NULL);
    start_others(idle, sleeper, &small);
    start_others(busy, burner, &small);
}

/// Gives what it took, ns.
static long call_all(probed *function, long n) {
    now_called = function;
    calls_each = n;
    long start = now_ns();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return now_ns() - start;
}

static void go(probed *function, long n) { printf("went calls %ld wall %ld\n", n * threads, call_all(function, n)); }

static void burst(long n) {
    const struct timespec pause = {0, 60000000};
    long took = 0;
    for (long made = 0; made < n; made += BURST) {
        took += call_all(called, BURST);
        nanosleep(&pause, NULL);
    }
    printf("went calls %ld wall %ld\n", n * threads, took);
}

static void beat(void) {
    struct request request = {7, 2};
    struct timespec pause = {0, 1000000};
    for (;;) {
        sink += called(1, "alice", &request);
        nanosleep(&pause, NULL);
    }
}

static void *function_of(const char *library, const char *function) {
    void *handle = dlopen(library, RTLD_NOW);
    void *found = handle ? dlsym(handle, function) : NULL;
    if (!found) {
        fprintf(stderr, "hot: %s\n", dlerror());
        exit(1);
    }
    return found;
}

int main(int argc, char **argv) {
    const char *library = NULL, *function = NULL;
    int opt;
    while ((opt = getopt(argc, argv, "t:i:b:l:f:s")) != -1) switch (opt) {
        case 't': threads = atoi(optarg); break;
        case 'i': idle = atoi(optarg); break;
        case 's': called = stepped; break;
        case 'b': busy = atoi(optarg); break;
        case 'l': library = optarg; break;
        case 'f': function = optarg; break;
        default:
            fprintf(stderr, "usage: hot [-t THREADS] [-i IDLE] [-b BUSY] [-s | -l LIBRARY -f FUNCTION]\n");
            return 2;
        }
    if (threads < 1 || threads > MAX_THREADS) return 2;
    if (library && function) *(void **)&called = function_of(library, function);
    setvbuf(stdout, NULL, _IOLBF, 0);
    calibrate();
    start_threads();
    printf("ready\n");
    char line[256], name[64];
    long n;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "go %ld", &n) == 1)
            go(called, n);
        else if (sscanf(line, "burst %ld", &n) == 1)
            burst(n);
        else if (sscanf(line, "twin %ld", &n) == 1)
            go(twin, n);
        else if (sscanf(line, "stamp %ld", &n) == 1)
            go(stamped, n);
        else if (sscanf(line, "detour %ld", &n) == 1)
            go(detoured, n);
        else if (sscanf(line, "take %63s %ld", name, &n) == 2)
            take(name, (int)n);
        else if (strcmp(line, "beat\n") == 0)
            beat();
    }
    return 0;
}
