// goroutines: stacks that move while calls are in flight, as Go's runtime moves them: a function that finds its stack
// too small has `runtime.copystack` make a larger one, and starts over. Prints "ready", and for each line "THREADS
// ROUNDS" what was entered and returned, and how often a stack was moved.
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct goroutine {
    uint64_t low, high, guard; // guard: below it there is too little room
    uint64_t sp;               // while its stack is moved
    uint64_t system_sp;        // the thread's own stack
};
_Static_assert(offsetof(struct goroutine, guard) == 16 && offsetof(struct goroutine, system_sp) == 32,
               "as written below");

enum { smallest = 2048, reserve = 256, depth = 200 };

long climb_entered, climb_returned, ride_entered, ride_returned, moves;

long run(struct goroutine *g, long n);

// r14 holds the goroutine, as in Go. No frame pointers: what is on these stacks may lie anywhere.
__asm__(".text\n"
        ".globl run, ride, climb\n"
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
        "  sub $8, %rsp\n"
        "  mov %rax, %rdi\n"
        "  call copy\n"
        "  add $8, %rsp\n"
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

int main(void) {
    puts("ready");
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        long threads = strtol(line, NULL, 10), rounds = strtol(strchr(line, ' '), NULL, 10);
        pthread_t all[64];
        for (long i = 0; i < threads; i++) pthread_create(&all[i], NULL, work, (void *)rounds);
        for (long i = 0; i < threads; i++) pthread_join(all[i], NULL);
        printf("climb entered %ld returned %ld\nride entered %ld returned %ld\nmoves %ld\n", climb_entered,
               climb_returned, ride_entered, ride_returned, moves);
        fflush(stdout);
    }
    return 0;
}
