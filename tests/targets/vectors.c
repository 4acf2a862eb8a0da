/*
 * vectors THREADS [VALUE]: threads that keep all of their vector registers filled, and look whether each holds what it
 * held.
 *
 * The x87, SSE, AVX and AVX-512 registers that there are (masks too), and the control words, are filled with values
 * that differ from thread to thread and from round to round; then come an instruction of each kind that a probe may be
 * on (at the symbols at_nop_WIDTH, and so on with load, push, branch, popf and syscall; do_work is called), and all is
 * compared. do_work returns the number that it finds in the first register; with VALUE it may return that instead.
 *
 * Prints "ready PID WIDTH", WIDTH the bits of a register (512, 256, 128; 0 where the machine is another); a line `check
 * N` is answered by "right R" when every thread has done N rounds more, `signal N` starts a 1 kHz profiling timer
 * before that, and from then on the timer has gone off ten times meanwhile, too. At a wrong value it prints "wrong ..."
 * and ends with status 3. At the end of its input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { most_threads = 16, registers = 32, register_bytes = 64, masks = 8 };

/* The assembly knows where these lie. */
struct state {
    unsigned char vectors[registers][register_bytes];
    unsigned long mask[masks];
    unsigned long x87[2];
    unsigned mxcsr;
    unsigned short control;
};

static int width;
static double value; /* what do_work may return */
static int timed;
static atomic_long done[most_threads];
static atomic_int stop;
volatile long ticks;

#if defined(__x86_64__)
__attribute__((noinline, used)) double do_work(double number) {
    __asm__ volatile("" ::: "memory");
    return number;
}

#define EACH16(do)                                                                                                     \
    do (0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11) do(12) do(13) do(14) do(15)
#define EACH16_MORE(do)                                                                                                \
    do (16) do(17) do(18) do(19) do(20) do(21) do(22) do(23) do(24) do(25) do(26) do(27) do(28) do(29) do(30) do(31)
#define EACH8(do)                                                                                                      \
    do (0) do(1) do(2) do(3) do(4) do(5) do(6) do(7)

#define LOAD_512(n) "vmovdqu64 " #n "*64(%%rbx), %%zmm" #n "\n"
#define STORE_512(n) "vmovdqu64 %%zmm" #n ", " #n "*64(%%r12)\n"
#define LOAD_256(n) "vmovdqu " #n "*64(%%rbx), %%ymm" #n "\n"
#define STORE_256(n) "vmovdqu %%ymm" #n ", " #n "*64(%%r12)\n"
#define LOAD_128(n) "movdqu " #n "*64(%%rbx), %%xmm" #n "\n"
#define STORE_128(n) "movdqu %%xmm" #n ", " #n "*64(%%r12)\n"
#define LOAD_MASK(n) "kmovq 2048+" #n "*8(%%rbx), %%k" #n "\n"
#define STORE_MASK(n) "kmovq %%k" #n ", 2048+" #n "*8(%%r12)\n"

/* The same words in each width: where probes are put. Only one of the widths is run. */
#define PLACES(w)                                                                                                      \
    ".globl at_nop_" #w ", at_load_" #w ", at_push_" #w "\n"                                                           \
    ".globl at_branch_" #w ", at_popf_" #w ", at_syscall_" #w "\n"                                                     \
    "at_nop_" #w ": nop\n"                                                                                             \
    "at_load_" #w ": mov ticks(%%rip), %%rax\n"                                                                        \
    "at_push_" #w ": push %%rax\n"                                                                                     \
    "pop %%rax\n"                                                                                                      \
    "cmp %%rax, %%rax\n"                                                                                               \
    "at_branch_" #w ": je 1f\n"                                                                                        \
    "ud2\n"                                                                                                            \
    "1: pushf\n"                                                                                                       \
    "at_popf_" #w ": popf\n"                                                                                           \
    "mov $39, %%eax\n"                                                                                                 \
    "at_syscall_" #w ": syscall\n"                                                                                     \
    "call do_work\n"

/* Control words first, the x87 stack, then the vectors; in the other order back. */
#define BEGIN "ldmxcsr 2128(%%rbx)\nfldcw 2132(%%rbx)\nfildq 2112(%%rbx)\nfildq 2120(%%rbx)\n"
#define END "fistpq 2120(%%r12)\nfistpq 2112(%%r12)\nfnstcw 2132(%%r12)\nstmxcsr 2128(%%r12)\n"

#define PASS(w, load, store)                                                                                           \
    __attribute__((noinline)) static void pass_##w(const struct state *from, struct state *into) {                     \
        register const struct state *rbx __asm__("rbx") = from;                                                        \
        register struct state *r12 __asm__("r12") = into;                                                              \
        __asm__ volatile("sub $256, %%rsp\n" BEGIN load PLACES(w) store END "add $256, %%rsp\n"                        \
                         : "+r"(rbx), "+r"(r12)                                                                        \
                         :                                                                                             \
                         : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");               \
    }

PASS(512, EACH16(LOAD_512) EACH16_MORE(LOAD_512) EACH8(LOAD_MASK),
     EACH16(STORE_512) EACH16_MORE(STORE_512) EACH8(STORE_MASK))
PASS(256, EACH16(LOAD_256), EACH16(STORE_256))
PASS(128, EACH16(LOAD_128), EACH16(STORE_128))

static void pass(const struct state *from, struct state *into) {
    if (width == 512)
        pass_512(from, into);
    else if (width == 256)
        pass_256(from, into);
    else
        pass_128(from, into);
}

static int widest(void) {
    if (__builtin_cpu_supports("avx512bw")) return 512;
    return __builtin_cpu_supports("avx2") ? 256 : 128;
}
#else
static void pass(const struct state *from, struct state *into) { memcpy(into, from, sizeof(*into)); }
static int widest(void) { return 0; }
#endif

static void fill(struct state *state, unsigned seed) {
    const size_t bytes = (size_t)width / 8, used = width == 512 ? registers : registers / 2;

    memset(state, 0, sizeof(*state));
    for (size_t r = 0; r < used; r++)
        for (size_t i = 0; i < bytes; i++) state->vectors[r][i] = (unsigned char)(seed + r * 7 + i * 13);
    for (int i = 0; width == 512 && i < masks; i++) state->mask[i] = seed * 0x9e3779b97f4a7c15UL + (unsigned)i;
    state->x87[0] = seed;
    state->x87[1] = seed + 1;
    state->mxcsr = 0x1f80 | (seed % 4) << 13;                        /* how it rounds */
    state->control = (unsigned short)(0x37f | (seed / 4 % 4) << 10); /* so does the other */
}

static void *work(void *arg) {
    const long self = (long)arg;
    struct state from, into;

    for (unsigned round = 1; !stop; round++) {
        fill(&from, round * most_threads + (unsigned)self);
        memset(&into, 0, sizeof(into));
        pass(&from, &into);
        if (memcmp(into.vectors[0], &value, sizeof(value)) == 0) memcpy(from.vectors[0], &value, sizeof(value));
        if (memcmp(&from, &into, sizeof(from)) != 0) {
            for (size_t i = 0; i < sizeof(from); i++)
                if (((char *)&from)[i] != ((char *)&into)[i]) {
                    printf("wrong at byte %zu of the state, round %u of thread %ld\n", i, round, self);
                    break;
                }
            fflush(stdout);
            _exit(3);
        }
        done[self]++;
    }
    return NULL;
}

static void on_tick(int sig) {
    (void)sig;
    ticks++;
}

static void start_timer(void) {
    struct itimerval each = {{0, 1000}, {0, 1000}};
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};

    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &each, NULL);
    timed = 1;
}

static void check(int threads, long rounds) {
    long before[most_threads], sum = 0;
    const long ticks_before = ticks;

    for (int i = 0; i < threads; i++) before[i] = done[i];
    for (int i = 0; i < threads; i++)
        while (done[i] < before[i] + rounds) usleep(200);
    while (timed && ticks < ticks_before + 10) usleep(200);
    for (int i = 0; i < threads; i++) sum += done[i];
    printf("right %ld\n", sum);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t ids[most_threads];
    char line[64];

    width = widest();
    if (argc > 2) value = atof(argv[2]);
    if (threads > most_threads) return 2;
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, (void *)i);
    printf("ready %d %d\n", (int)getpid(), width);
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (strncmp(line, "signal", 6) == 0) start_timer();
        check(threads, strchr(line, ' ') ? atol(strchr(line, ' ')) : 1000);
        fflush(stdout);
    }
    stop = 1;
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    return 0;
}
