/*
 * names: C functions to be named by a SPEC: static ones with the same name in two files, inlined instances, clones.
 *
 * Prints "ready ADDRESS" (of plain_one), and for each line of standard input calls everything once and says how often
 * each function ran; at the end of its input it leaves with status 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "names.h"

__attribute__((noinline)) int plain_one(int n) {
    __asm__ volatile("" ::: "memory");
    return n + 1; /* line of plain_one */
}

__attribute__((noinline)) int plain_two(int n) {
    __asm__ volatile("" ::: "memory");
    return n + 2;
}

__attribute__((noinline)) static int same_name(int n) {
    __asm__ volatile("" ::: "memory");
    return n * 3;
}

static inline __attribute__((always_inline)) int inlined_twice(int n) {
    __asm__ volatile("nop" ::: "memory");
    return n * 7;
}

__attribute__((noinline)) int first_user(int n) { return inlined_twice(n) + 1; }

__attribute__((noinline)) int second_user(int n) { return inlined_twice(n + 5) ^ 3; }

/* Always called with the same second argument: gcc makes a clone (.constprop) of it. */
__attribute__((noinline)) static int cloned(int n, int mode) {
    __asm__ volatile("" ::: "memory");
    return mode ? n + mode : n - 1;
}

size_t (*volatile length)(const char *) = strlen;

int main(void) {
    char line[64], copy[64];
    volatile int sink;

    printf("ready %p\n", (void *)plain_one);
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        for (int i = 0; i < 5; i++) sink = plain_one(i);
        sink = plain_two(1);
        for (int i = 0; i < 3; i++) sink = same_name(i);
        for (int i = 0; i < 4; i++) sink = other_file(i);
        sink = first_user(2);
        sink = first_user(3);
        sink = second_user(4);
        for (int i = 0; i < 6; i++) sink = cloned(i, 9);
        sink = (int)strlen(line) + (int)length(line);
        memcpy(copy, line, strlen(line));
        for (int i = 0; i < 3; i++) sink = (int)time(NULL);
        (void)sink;
        printf("done plain_one 5 plain_two 1 same_name 7 inlined_twice 3 cloned 6 strlen %p\n", (void *)line);
        fflush(stdout);
    }
    return 0;
}
