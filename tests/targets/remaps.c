/*
 * remaps: maps a part of its own file once more, as runtimes do that want code near other code. By the new place alone
 * do_work would seem to lie in a page of data beside it.
 *
 * Prints "ready", then for each line of its input calls do_work ten times and prints "calls 10 clean N": N is 1 while
 * the page of data holds what it held.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL

__attribute__((noinline, aligned(4096))) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

__attribute__((noinline, aligned(4096))) long other(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 5 + 2;
}

/* Where in the file the page of other() is. */
static off_t offset_of(unsigned long address) {
    unsigned long start, end, offset;
    char line[512], rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, rights, &offset) == 4 && start <= address && address < end) {
            fclose(maps);
            return (off_t)(offset + (address - start));
        }
    return -1;
}

int main(void) {
    char line[64];
    unsigned char data[PAGE];
    int file = open("/proc/self/exe", O_RDONLY);
    unsigned long distance = (unsigned long)other - (unsigned long)do_work;
    unsigned char *area = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *again = area + 8 * PAGE;

    if (file < 0 || area == MAP_FAILED) return 2;
    memset(area, 0x90, 8 * PAGE);
    memset(data, 0x90, sizeof(data));
    if (mmap(again, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, offset_of((unsigned long)other)) ==
        MAP_FAILED)
        return 3;
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        for (long i = 0; i < 10; i++)
            if (do_work(i) != i * 3 + 1 || ((long (*)(long))again)(i) != i * 5 + 2) return 4;
        printf("calls 10 clean %d\n", memcmp(again - distance, data, sizeof(data)) == 0);
        fflush(stdout);
    }
    return 0;
}
