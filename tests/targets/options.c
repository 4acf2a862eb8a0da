/*
 * options: calls with known arguments and results, as often as a line says.
 *
 * Prints "ready", then obeys each line of standard input and answers "done":
 *   calls N      work(i % 4, names[i % 3], i, i / 2.0) for i = 0 … N-1; it returns i * (i % 4)
 *   threads T N  the same in T threads at once, each with a name of its own (t0, t1, …)
 *   deep N       recurse(N), which calls itself down to 0
 *   visit        visit(&tree) with the structures that are written out below
 *   next_step N       next_step(i) for i = 0 … N-1
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "machine.h"

/* Functions as other files would call them: no optimizer may know their bodies at the calls. */
#if defined(__clang__)
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noipa))
#endif

enum op { OP_READ, OP_WRITE, OP_SEEK, OP_CLOSE };

struct item {
    int16_t id;
    uint8_t flags;
    unsigned low : 4, high : 4;
    double weight;
    const char *name;
    struct item *next;
    int history[4];
};

struct tree {
    struct item *items;
    struct {
        long depth;
        float ratio;
    } info;
    char label[12];
    struct item **table;
    uint64_t big;
};

int global_limit = 17;
static long static_total = -3;
__thread int per_thread = 99;

ALONE long work(enum op op, const char *name, long n, double half) {
    __asm__ volatile("" : "+r"(name), "+" VECTOR(half) : : "memory");
    return n * (long)op;
}

ALONE long recurse(long depth) {
    __asm__ volatile("" ::: "memory");
    long below = depth == 0 ? -1 : recurse(depth - 1);

    __asm__ volatile("" : "+r"(below));
    return below + 1;
}

ALONE int visit(struct tree *tree, const struct item *first, uint32_t mask) {
    __asm__ volatile("" ::: "memory");
    static_total += per_thread - 99;
    return tree->items == first ? (int)mask : -1;
}

ALONE unsigned long next_step(unsigned long n) {
#if defined(__x86_64__)
    unsigned long sum;
    __asm__ volatile("mov %1, %0\n\tbswap %0\n\tbswap %0" : "=&a"(sum) : "r"(n));
#else
    register unsigned long sum __asm__("x9");
    __asm__ volatile("mov %0, %1\n\trev %0, %0\n\trev %0, %0" : "=&r"(sum) : "r"(n));
#endif
    return 3 * (sum + 1);
}

static void calls(long n) {
    static const char *const names[] = {"alpha", "beta", "gamma"};

    for (long i = 0; i < n; i++)
        if (work((enum op)(i % 4), names[i % 3], i, (double)i / 2) != i * (i % 4)) exit(3);
}

struct job {
    int number;
    long calls;
};

static void *thread(void *arg) {
    struct job *job = arg;
    char name[16];

    snprintf(name, sizeof(name), "t%d", job->number);
    prctl(PR_SET_NAME, name);
    calls(job->calls);
    return NULL;
}

static void threads(int count, long n) {
    pthread_t id[64];
    struct job job[64];

    for (int i = 0; i < count; i++) {
        job[i].number = i;
        job[i].calls = n;
        if (pthread_create(&id[i], NULL, thread, &job[i])) exit(4);
    }
    for (int i = 0; i < count; i++) pthread_join(id[i], NULL);
}

static void visits(void) {
    struct item second = {-2, 0xf0, 3, 12, -0.25, "second", NULL, {5, 6, 7, 8}};
    struct item first = {300, 0x81, 9, 15, 1.5, "first", &second, {1, -2, 3, -4}};
    struct item *table[] = {&second, &first};
    struct tree tree = {&first, {7, 0.5f}, "a tree", table, 0xffffffffffffffff};

    if (visit(&tree, &first, 0xdeadbeef) != (int)0xdeadbeef) exit(3);
}

int main(void) {
    char line[64];
    long n;
    int count;

    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "calls %ld", &n) == 1)
            calls(n);
        else if (sscanf(line, "threads %d %ld", &count, &n) == 2)
            threads(count, n);
        else if (sscanf(line, "deep %ld", &n) == 1 && recurse(n) != n)
            exit(3);
        else if (strncmp(line, "visit", 5) == 0)
            visits();
        else if (sscanf(line, "next_step %ld", &n) == 1)
            for (unsigned long i = 0; i < (unsigned long)n; i++)
                if (next_step(i) != 3 * (i + 1)) exit(3);
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
