/*
 * generates: calls code that it has made itself, and whose name stands in /tmp/perf-PID.map.
 *
 * Prints "ready ADDRESS"; for each line it calls the code, as the function "generated: one more", and prints "N" that
 * it gives. At the end of its input it removes the file and leaves with status 0.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__
static const unsigned char code[] = {0x8d, 0x47, 0x01, 0xc3}; /* lea eax, [rdi + 1]; ret */
#else
static const unsigned char code[] = {0x00, 0x04, 0x00, 0x11, 0xc0, 0x03, 0x5f, 0xd6}; /* add w0, w0, 1; ret */
#endif

int main(void) {
    char name[64], line[64];
    int n = 0;
    FILE *map;
    void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memcpy(made, code, sizeof(code));
    if (mprotect(made, 4096, PROT_READ | PROT_EXEC)) return 1;
    snprintf(name, sizeof(name), "/tmp/perf-%d.map", (int)getpid());
    map = fopen(name, "w");
    if (!map) return 1;
    fprintf(map, "%lx %zx generated: one more\n", (unsigned long)made, sizeof(code));
    fclose(map);
    printf("ready %p\n", made);
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        n = ((int (*)(int))made)(n);
        printf("%d\n", n);
        fflush(stdout);
    }
    return remove(name);
}
