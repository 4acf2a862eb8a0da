/*
 * moved_text: puts the memory of its own code where its file was mapped, as programs do that want it in huge pages.
 *
 * Prints "ready", then for each line of its input calls outer, which calls work, ten times and prints "calls 10".
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((noinline)) int work(int n) {
    __asm__ volatile("" ::: "memory");
    return n * 2;
}

__attribute__((noinline)) int outer(int n) { return work(n) + 1; }

static int move_text(void) {
    unsigned long start, end;
    char line[512], rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) != 3 || rights[2] != 'x') continue;
        if (start > (unsigned long)work || (unsigned long)work >= end) continue;
        void *copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(copy, (void *)start, end - start);
        mprotect(copy, end - start, PROT_READ | PROT_EXEC);
        fclose(maps);
        return mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) != MAP_FAILED;
    }
    return 0;
}

int main(void) {
    char line[64];

    if (!move_text()) return 2;
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        for (int i = 0; i < 10; i++)
            if (outer(i) != 2 * i + 1) return 3;
        printf("calls 10\n");
        fflush(stdout);
    }
    return 0;
}
