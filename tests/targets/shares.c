// A thread that spends 30 % of its time in work, 10 % in rest of its code, and 60 % asleep in one call; the parts are
// of random length. Says at each line of its input for how many nanoseconds each was since the last line.
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static uint64_t work(uint64_t ns) {
    uint64_t begin = now(), end = begin;
    while (end - begin < ns) end = now();
    return end - begin;
}

/// Not the same code as work, which would be one function with it.
__attribute__((noinline)) static uint64_t tidy(uint64_t ns) {
    uint64_t begin = now(), end = begin;
    while (end < begin + ns) end = now();
    return end - begin + (ns >> 63);
}

__attribute__((noinline)) static uint64_t sleep_for(uint64_t ns) {
    uint64_t begin = now();
    struct timespec time = {0, (long)ns};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    return now() - begin;
}

int main(void) {
    uint64_t worked = 0, tidied = 0, slept = 0;
    uint32_t random = 1;
    printf("ready\n");
    fflush(stdout);
    while (1) {
        random = random * 1664525U + 1013904223U;
        uint64_t unit = 1000000 + (random >> 8) % 2000000; // ns: a look is late by less than a hundredth of that
        worked += work(3 * unit);
        tidied += tidy(unit);
        slept += sleep_for(6 * unit);
        struct pollfd input = {0, POLLIN, 0};
        char line[64];
        if (poll(&input, 1, 0) != 1) continue;
        if (!fgets(line, sizeof line, stdin)) return 0;
        printf("work %llu tidy %llu asleep %llu\n", (unsigned long long)worked, (unsigned long long)tidied,
               (unsigned long long)slept);
        worked = tidied = slept = 0;
        fflush(stdout);
    }
}
