/*
 * casts: a function takes what only another unit (casts_types.c, which may be a library) knows the type of.
 *
 * For each line of standard input take is called once; then it prints what is true. At the end of its input it leaves
 * with status 0.
 */
#include <stdio.h>

void *make_other(void);
unsigned long size_of_other(void);

__attribute__((noinline)) void take(void *other) { __asm__ volatile("" ::"r"(other) : "memory"); }

int main(void) {
    char line[64];

    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        take(make_other());
        printf("done size %lu\n", size_of_other());
        fflush(stdout);
    }
    return 0;
}
