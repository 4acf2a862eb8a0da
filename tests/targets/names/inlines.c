/*
 * inlines: inlined instances that begin at one and the same instruction: of two functions, one in the other, and, where
 * the compiler does so, of one function twice.
 *
 * For each line of standard input nests is called twice and pairs once; then it prints what is true: the address of
 * what it hands on. At the end of its input it leaves with status 0.
 */
#include <stdio.h>

struct box {
    int side;
    long weight;
};

static inline __attribute__((always_inline)) long nest_inner(struct box *in, int level) {
    __asm__ volatile("nop" ::: "memory");
    return in->weight + level;
}

static inline __attribute__((always_inline)) long nest_outer(struct box *out) { return nest_inner(out, 7) + 1; }

static inline __attribute__((always_inline)) long twin(long n) {
    __asm__ volatile("" : "+r"(n)); /* no instruction: what follows begins here, too */
    return n;
}

__attribute__((noinline)) long nests(struct box *box) { return nest_outer(box) * 3; }

__attribute__((noinline)) long pairs(long a, long b) {
    long x = twin(a), y = twin(b);
    __asm__ volatile("nop" ::"r"(x), "r"(y));
    return x ^ y;
}

int main(void) {
    char line[64];
    struct box box = {3, 70};
    volatile long sink;

    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        sink = nests(&box);
        sink = nests(&box);
        sink = pairs(5, 6);
        (void)sink;
        printf("done side %d weight %ld\n", box.side, box.weight);
        fflush(stdout);
    }
    return 0;
}
