/*
 * texts: threads that hand texts and structures over by pointers into all kinds of memory, some of which cannot be
 * read. Those are not followed here: a signal for one is the tracer's fault, and is counted as wrong.
 *
 *     texts THREADS
 *
 * Orders, a line each:
 *     say N KINDS    in each thread, for i from 0 to N - 1, said(text, kind, i) and weighed(item, i) for each of the
 *                    kinds, letters; then answered(i), which gives "answer I": "did CALLS WRONG", of all so far
 *
 * Kinds: h heap, r read-only data, s stack, t thread-local, e behind it a page that cannot be read, f mapped for this
 * call alone, 0 a null pointer, b a small number, u unmapped a moment before, n PROT_NONE, x beyond the end of a mapped
 * file. Texts are "KIND I", and KIND alone in read-only data; an item has the number i and the text as its name.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct item {
    long number;
    char name[24];
};

enum { most = 64, page = 4096 };

static atomic_long calls, wrong;
static long count;
static char kinds[32], *unreadable, *beyond;
static __thread struct item own;
static const struct item constant = {.number = -1, .name = "r"};

__attribute__((noinline)) long said(const char *text, int kind, long i) {
    __asm__ volatile("" : "+r"(i) : "r"(text) : "memory");
    return i + kind;
}

__attribute__((noinline)) long weighed(const struct item *item, long i) {
    __asm__ volatile("" : "+r"(i) : "r"(item) : "memory");
    return i * 2;
}

__attribute__((noinline)) char *answered(char *room, long i) {
    sprintf(room, "answer %ld", i);
    return room;
}

static void *map(size_t size) { return mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

/* The item of a kind, and of which mapping it is. */
static struct item *item_of(char kind, long i, struct item *on_stack, void **mapping) {
    struct item *item = on_stack;
    *mapping = 0;
    switch (kind) {
    case '0': return 0;
    case 'b': return (struct item *)0x10;
    case 'n': return (struct item *)unreadable;
    case 'x': return (struct item *)beyond;
    case 'r': return (struct item *)&constant;
    case 'h': item = malloc(sizeof *item); break;
    case 't': item = &own; break;
    case 'e':
        *mapping = map(2 * page);
        mprotect((char *)*mapping + page, page, PROT_NONE);
        item = (struct item *)((char *)*mapping + page) - 1;
        break;
    case 'f':
    case 'u':
        *mapping = map(page);
        item = *mapping;
        break;
    }
    item->number = i;
    snprintf(item->name, sizeof item->name, "%c %ld", kind, i);
    return item;
}

static void call(char kind, long i) {
    struct item on_stack, *item;
    void *mapping;
    item = item_of(kind, i, &on_stack, &mapping);
    if (kind == 'u') munmap(mapping, page);
    if (said(item ? item->name : 0, kind, i) != i + kind) wrong++;
    if (weighed(item, i) != i * 2) wrong++;
    if (kind == 'h') free(item);
    if (kind == 'e') munmap(mapping, 2 * page);
    if (kind == 'f') munmap(mapping, page);
    calls++;
}

static void *go(void *unused) {
    char room[32], expected[32];
    for (long i = 0; i < count; i++) {
        for (const char *kind = kinds; *kind; kind++) call(*kind, i);
        snprintf(expected, sizeof expected, "answer %ld", i);
        if (strcmp(answered(room, i), expected) != 0) wrong++;
    }
    return unused;
}

static void on_fault(int number) {
    wrong++;
    signal(number, SIG_DFL);
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    unreadable = mmap(0, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int file = memfd_create("short", 0);
    if (ftruncate(file, page) != 0) return 2;
    beyond = (char *)mmap(0, 2 * page, PROT_READ, MAP_SHARED, file, 0) + page;
    printf("ready %d\n", getpid());
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "say %ld %31s", &count, kinds) == 2) {
            pthread_t all[most];
            for (int i = 0; i < threads; i++) pthread_create(&all[i], 0, go, 0);
            for (int i = 0; i < threads; i++) pthread_join(all[i], 0);
        }
        printf("did %ld %ld\n", (long)calls, (long)wrong);
        fflush(stdout);
    }
    return wrong != 0;
}
