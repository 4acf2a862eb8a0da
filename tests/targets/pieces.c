/*
 * pieces: functions of which GCC makes pieces (-fpartial-inlining): `whole` is there still, and calls its piece
 * whole.part.0; of `inlined` only the piece inlined.part.0 is there, which its callers call.
 *
 * Prints "ready", and for each line on standard input calls whole 10 times, 20 times more where its beginning is
 * inlined, and inlined 20 times, all to their ends, and prints "done".
 */
#include <stdio.h>
#include <string.h>

static char buffer[256];

/* The rest is too much to be inlined. */
#define REST(n, by)                                                                                                    \
    snprintf(buffer, sizeof buffer, "%ld", (n) * (by));                                                                \
    snprintf(buffer + 64, sizeof buffer - 64, "%ld", (n)*5);                                                           \
    snprintf(buffer + 128, sizeof buffer - 128, "%ld", (n)*7);                                                         \
    return (long)(strlen(buffer) + strlen(buffer + 64) + strlen(buffer + 128))

long whole(long n) {
    if (n == 0) return 0;
    REST(n, 3);
}

static long inlined(long n) {
    if (n == 0) return 0;
    REST(n, 11);
}

static long (*volatile called)(long) = whole;

__attribute__((noinline)) static long once(long n) { return inlined(n); }
__attribute__((noinline)) static long again(long n) { return inlined(n) + 1; }

__attribute__((noinline)) static long directly(long n) { return whole(n) + 2; }
__attribute__((noinline)) static long directly_again(long n) { return whole(n) + 3; }

int main(void) {
    char line[16];

    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (long i = 1; i <= 10; i++) {
            called(i);
            once(i);
            again(i);
            directly(i);
            directly_again(i);
        }
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
