// Functions that print what they saw, and callers that print what they got: for fault injection.
//
// inject      Prints "ready PID"; for each line of its input, FUNCTION N, calls that function N times, a line each:
//             "FUNCTION I: saw … got …", then "ran R done".
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__clang__)
#define ALONE __attribute__((noinline, weak)) // weak: another definition may take its place, so nothing is known of it
#else
#define ALONE __attribute__((noipa))
#endif

static int ran;
static char saw[256];

ALONE long add(long a, int b) {
    ran++;
    snprintf(saw, sizeof saw, "%ld %d", a, b);
    return a + b;
}

ALONE double scale(double x, float by, int plus) {
    ran++;
    snprintf(saw, sizeof saw, "%g %g %d", x, (double)by, plus);
    return x * (double)by + plus;
}

ALONE float half(float x) {
    ran++;
    snprintf(saw, sizeof saw, "%g", (double)x);
    return x / 2;
}

ALONE long many(long a, long b, long c, long d, long e, long f, long g, short h) {
    ran++;
    snprintf(saw, sizeof saw, "%ld %ld %d", f, g, h);
    return a + b + c + d + e + f + g + h;
}

ALONE const char *text(const char *of, unsigned char n) {
    ran++;
    snprintf(saw, sizeof saw, "%s %d", of ? of : "(null)", n);
    return of;
}

ALONE void nothing(int n) {
    ran++;
    snprintf(saw, sizeof saw, "%d", n);
}

struct big {
    long all[8];
};
ALONE struct big large(int n) {
    ran++;
    snprintf(saw, sizeof saw, "%d", n);
    return (struct big){{n}};
}

ALONE int fallible(size_t size) {
    void *volatile got = malloc(size); // volatile: clang leaves out what is freed unused
    snprintf(saw, sizeof saw, "%s", got ? "memory" : "nothing");
    free(got);
    return got ? 0 : -1;
}

ALONE long deep(long n, long add) {
    ran++;
    volatile long below = n > 0 ? deep(n - 1, 1) : 0; // volatile: or compilers make a loop of it
    return add + below;
}

ALONE long outer(long a) {
    volatile long inner = add(a, 2); // volatile: or the call becomes a jump
    return inner;
}

static void call(const char *name, int i) {
    char got[64] = "";
    strcpy(saw, "-");
    if (!strcmp(name, "add")) snprintf(got, sizeof got, "%ld", add(i, 2));
    if (!strcmp(name, "outer")) snprintf(got, sizeof got, "%ld", outer(i));
    if (!strcmp(name, "scale")) snprintf(got, sizeof got, "%g", scale(i, 0.5f, 1));
    if (!strcmp(name, "half")) snprintf(got, sizeof got, "%g", (double)half((float)i));
    if (!strcmp(name, "many")) snprintf(got, sizeof got, "%ld", many(1, 2, 3, 4, 5, 6, i, 8));
    if (!strcmp(name, "text")) {
        const char *t = text("some", (unsigned char)i);
        snprintf(got, sizeof got, "%s", t ? t : "(null)");
    }
    if (!strcmp(name, "nothing")) nothing(i);
    if (!strcmp(name, "large")) snprintf(got, sizeof got, "%ld", large(i).all[0]);
    if (!strcmp(name, "deep")) snprintf(got, sizeof got, "%ld", deep(i, 1));
    if (!strcmp(name, "fallible")) snprintf(got, sizeof got, "%d", fallible(1000));
    printf("%s %d: saw %s got %s\n", name, i, saw, got);
}

int main(void) {
    char line[64], name[32];
    int count;
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%31s %d", name, &count) != 2) continue;
        ran = 0;
        for (int i = 0; i < count; i++) call(name, i);
        printf("ran %d done\n", ran);
        fflush(stdout);
    }
    return 0;
}
