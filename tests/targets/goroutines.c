// goroutines: stacks that move while calls are in flight, as Go's runtime moves them: a function that finds its stack
// too small has `runtime.copystack` make a larger one, and starts over. Prints "ready", and for each line "THREADS
// ROUNDS" what was entered and returned, and how often a stack was moved. For a line "hop N" it does so once a signal
// has come N times right before the first instruction of such a function, and another thread has gone on there. x86-64.
#if defined(__x86_64__)
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

struct goroutine {
    uint64_t low, high, guard; // guard: below it there is too little room
    uint64_t sp;               // while its stack is moved
    uint64_t system_sp;        // the thread's own stack
};
_Static_assert(offsetof(struct goroutine, guard) == 16 && offsetof(struct goroutine, system_sp) == 32,
               "as written below");

enum { smallest = 2048, reserve = 256, depth = 200 };

long climb_entered, climb_returned, ride_entered, ride_returned, moves;
volatile long restarting; // it is about to start over

long run(struct goroutine *g, long n);
long resume(struct goroutine *g, long n, uint64_t sp);
void climb(void);

// r14 holds the goroutine, as in Go. No frame pointers: these stacks may lie anywhere.
__asm__(".text\n"
        ".globl run, resume, ride, climb\n"
        ".type run, @function\n"
        "run:\n"
        "  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "  mov %rdi, %r14\n"
        "  mov %rsi, %rdi\n"
        "  mov %rsp, 32(%r14)\n"
        "  mov 8(%r14), %rsp\n"
        "  call ride\n"
        "  mov 32(%r14), %rsp\n"
        "  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "  ret\n"
        ".size run, . - run\n"
        ".type resume, @function\n"
        "resume:\n"
        "  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "  mov %rdi, %r14\n"
        "  mov %rsi, %rdi\n"
        "  mov %rsp, 32(%r14)\n"
        "  mov %rdx, %rsp\n"
        "  jmp climb\n"
        ".size resume, . - resume\n"
        ".type ride, @function\n"
        "ride:\n"
        "  lock incq ride_entered(%rip)\n"
        "  call climb\n"
        "  lock incq ride_returned(%rip)\n"
        "  ret\n"
        ".size ride, . - ride\n"
        ".type climb, @function\n"
        "climb:\n"
        "  cmp 16(%r14), %rsp\n"
        "  jbe 2f\n"
        "  sub $40, %rsp\n"
        "  lock incq climb_entered(%rip)\n"
        "  mov %rdi, (%rsp)\n"
        "  xor %eax, %eax\n"
        "  test %rdi, %rdi\n"
        "  je 1f\n"
        "  dec %rdi\n"
        "  call climb\n"
        "  add (%rsp), %rax\n"
        "1: lock incq climb_returned(%rip)\n"
        "  add $40, %rsp\n"
        "  ret\n"
        "2: call morestack\n"
        "  movq $1, restarting(%rip)\n"
        "  jmp climb\n"
        ".size climb, . - climb\n"
        ".type morestack, @function\n"
        "morestack:\n"
        "  push %rdi\n"
        "  mov %rsp, 24(%r14)\n"
        "  mov 32(%r14), %rsp\n"
        "  mov %r14, %rax\n"
        "  call runtime.copystack\n"
        "  mov 24(%r14), %rsp\n"
        "  pop %rdi\n"
        "  ret\n"
        ".size morestack, . - morestack\n"
        ".type runtime.copystack, @function\n"
        "runtime.copystack:\n"
        "  sub $16, %rsp\n"
        "  mov %rax, %rdi\n"
        "  call copy\n"
        "  add $16, %rsp\n"
        "  ret\n"
        ".size runtime.copystack, . - runtime.copystack\n");

static void set_stack(struct goroutine *g, uint64_t size) {
    g->low = (uint64_t)malloc(size);
    g->high = g->low + size;
    g->guard = g->low + reserve;
}

__attribute__((used)) void copy(struct goroutine *g) {
    struct goroutine old = *g;
    uint64_t used = old.high - old.sp;
    set_stack(g, 2 * (old.high - old.low));
    g->sp = g->high - used;
    memcpy((void *)g->sp, (void *)old.sp, used);
    memset((void *)old.low, 0x5a, old.high - old.low);
    free((void *)old.low);
    __atomic_add_fetch(&moves, 1, __ATOMIC_RELAXED);
}

static void *work(void *rounds) {
    for (long i = 0; i < (long)rounds; i++) {
        struct goroutine g;
        set_stack(&g, smallest);
        if (run(&g, depth) != depth * (depth + 1) / 2) abort();
        free((void *)g.low);
    }
    return NULL;
}

static struct goroutine hopper;
static volatile uint64_t hopper_sp, hopper_n;
static volatile int waits, done; // the goroutine waits for a thread; no more will come
static volatile long hop_result;
static sigjmp_buf out;

// At the first instruction the thread lets go of its goroutine.
static void on_urgent(int sig, siginfo_t *info, void *context) {
    const greg_t *at = ((ucontext_t *)context)->uc_mcontext.gregs;
    (void)sig;
    (void)info;
    if (at[REG_RIP] != (greg_t)climb) return;
    hopper_sp = (uint64_t)at[REG_RSP];
    hopper_n = (uint64_t)at[REG_RDI];
    waits = 1;
    siglongjmp(out, 1);
}

static void *go_on_with_it(void *unused) {
    while (!done) {
        if (waits) {
            hop_result = resume(&hopper, (long)hopper_n, hopper_sp);
            waits = 0;
        }
        sched_yield();
    }
    return unused;
}

static void *send_urgent(void *to) {
    while (!done) {
        if (restarting) {
            restarting = 0;
            pthread_kill(*(pthread_t *)to, SIGURG);
        }
        sched_yield();
    }
    return NULL;
}

static void hop(long times) {
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_urgent, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    pthread_t self = pthread_self(), sender, other;
    static volatile long hops;

    sigaltstack(&alternate, NULL);
    sigaction(SIGURG, &action, NULL);
    pthread_create(&sender, NULL, send_urgent, &self);
    pthread_create(&other, NULL, go_on_with_it, NULL);
    while (hops < times) {
        set_stack(&hopper, smallest);
        if (sigsetjmp(out, 1) == 0) {
            hop_result = run(&hopper, depth);
        } else {
            hops++;
            while (waits) sched_yield();
        }
        if (hop_result != depth * (depth + 1) / 2) abort();
        free((void *)hopper.low);
    }
    done = 1;
    pthread_join(sender, NULL);
    pthread_join(other, NULL);
}

int main(void) {
    puts("ready");
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        long threads = strtol(line, NULL, 10), rounds = strtol(strchr(line, ' '), NULL, 10);
        pthread_t all[64];
        if (strncmp(line, "hop", 3) == 0) hop(rounds);
        for (long i = 0; i < threads; i++) pthread_create(&all[i], NULL, work, (void *)rounds);
        for (long i = 0; i < threads; i++) pthread_join(all[i], NULL);
        printf("climb entered %ld returned %ld\nride entered %ld returned %ld\nmoves %ld\n", climb_entered,
               climb_returned, ride_entered, ride_returned, moves);
        fflush(stdout);
    }
    return 0;
}
#else
int main(void) { return 0; }
#endif
