// Stacks of all kinds, for --stack and --inside: inlined calls, callbacks of libc, signal handlers on a stack of their
// own, threads, a library that is loaded late, coroutines, calls that are left by longjmp. Says what it counted.
//
// stacks once          does everything one time, without waiting
// stacks               on each line of its input: once, work N, or hold
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

volatile int sink;
static int seen_inside; // calls of place() under outer()
static __thread int depth_of_outer;

__attribute__((noinline)) int place(int n) {
    if (depth_of_outer > 0) __atomic_add_fetch(&seen_inside, 1, __ATOMIC_RELAXED);
    sink += n;
    return n + 1;
}

static inline __attribute__((always_inline)) int innermost(int n) { return place(n) + 1; }
static inline __attribute__((always_inline)) int inlined(int n) { return innermost(n + 1) + 1; }

__attribute__((noinline)) int middle(int n) {
    volatile char room[64];
    room[n & 63] = (char)n;
    return inlined(n) + room[n & 63];
}

__attribute__((noinline)) int outer(int n) {
    depth_of_outer++;
    int result = middle(n) + 1;
    depth_of_outer--;
    return result;
}

__attribute__((noinline)) int recurse(int n) {
    depth_of_outer++;
    int result = n == 0 ? place(n) : recurse(n - 1) + 1;
    depth_of_outer--;
    return result;
}

// Its frame is gone while place() runs.
__attribute__((noinline)) int tail(int n) {
    sink += n;
    return place(n + 10);
}

// Waits in the middle of a call.
__attribute__((noinline)) int holding(void) {
    char line[64];
    printf("holding\n");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 0;
    return place(7) + 1;
}

// Calls from libc's code.
__attribute__((noinline)) static int compare(const void *a, const void *b) {
    return place(*(const int *)a) - *(const int *)b;
}
__attribute__((noinline)) int sort(void) {
    int values[] = {3, 1, 2};
    qsort(values, 3, sizeof *values, compare);
    return values[0] + 1;
}

// A signal that interrupts code anywhere, handled on another stack.
__attribute__((noinline)) static void handler(int signal) { sink += place(signal) + 1; }
__attribute__((noinline)) int interrupted(void) {
    static char stack[65536];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack}, none = {.ss_flags = SS_DISABLE};
    sigaltstack(&other, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    sink += *(volatile int *)&sink;
    sigaltstack(&none, NULL);
    return sink;
}
static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)info;
    sink += place(signal);
#ifdef __x86_64__
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2; // behind the two bytes of the load
#else
    ((ucontext_t *)context)->uc_mcontext.pc += 4;
#endif
}
__attribute__((noinline)) int faulting(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    long value = 0;
#ifdef __x86_64__
    __asm__ volatile("mov (%1), %%eax" : "+a"(value) : "b"(0L));
#else
    __asm__ volatile("ldr %0, [%1]" : "+r"(value) : "r"(0L));
#endif
    signal(SIGSEGV, SIG_DFL);
    return (int)value;
}

static void *thread(void *argument) {
    sink += outer(*(int *)argument);
    return NULL;
}
__attribute__((noinline)) int threaded(void) {
    pthread_t id;
    int n = 5;
    pthread_create(&id, NULL, thread, &n);
    pthread_join(id, NULL);
    return n;
}

// Coroutines: the second one is not inside of outer(), although its thread is.
static ucontext_t main_context, inner_context;
static void coroutine(void) {
    int depth = depth_of_outer;
    depth_of_outer = 0;
    sink += place(1);
    depth_of_outer = depth;
    swapcontext(&inner_context, &main_context);
}
__attribute__((noinline)) int switching(void) {
    static char stack[65536];
    getcontext(&inner_context);
    inner_context.uc_stack.ss_sp = stack;
    inner_context.uc_stack.ss_size = sizeof stack;
    inner_context.uc_link = &main_context;
    makecontext(&inner_context, coroutine, 0);
    swapcontext(&main_context, &inner_context);
    return place(2);
}

// Left without a return.
static jmp_buf back;
__attribute__((noinline)) void leave(void) {
    depth_of_outer++;
    place(1);
    depth_of_outer--;
    longjmp(back, 1);
}
__attribute__((noinline)) int jumping(void) {
    if (setjmp(back) == 0) leave();
    return place(3);
}

// Loaded late.
__attribute__((noinline)) int late(void) {
    void *library = dlopen("libm.so.6", RTLD_NOW);
    if (!library) return place(0);
    int (*function)(double) = (int (*)(double))dlsym(library, "ilogb");
    int result = function ? function(1000.0 + sink % 2) : 0;
    return place(result);
}

static void once(void) {
    sink += outer(1) + recurse(3) + sort() + interrupted() + faulting() + threaded() + switching() + jumping() +
            tail(1) + late();
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "once") == 0) {
        once();
        printf("inside %d\n", seen_inside);
        return 0;
    }
    char line[64];
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        seen_inside = 0;
        int rounds = 1;
        if (strcmp(line, "hold\n") == 0)
            sink += holding() + place(8);
        else if (sscanf(line, "work %d", &rounds) == 1)
            for (int i = 0; i < rounds; i++) sink += outer(i) + middle(i);
        else
            once();
        printf("inside %d\ndone\n", seen_inside);
        fflush(stdout);
    }
    return 0;
}
