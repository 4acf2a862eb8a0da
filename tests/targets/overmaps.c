/*
 * overmaps: a program that maps its own memory over foreign mappings in it, or unmaps them.
 *
 * Prints "ready" and reads lines:
 *
 *     work N    calls do_work N times: "did N"
 *     ticks N   calls do_work until a timer of 1 kHz has expired N times: "tick N"
 *     over      maps data of its own over each executable mapping without a file: "over N", how many there were
 *     away      unmaps each of them first: "away N"
 *     page      as over, but that one alone in which ktrace says what it has changed: "page 1"
 *     plain     makes that one unexecutable: "plai 1"
 *     endless   makes a jump to itself of each instruction in there that may be a system call: "endl 1"
 *     drop      has the kernel drop the pages of its code, and read them from the file again: "drop 1"
 *     child     a child calls do_work ten times and looks: "chil S", the child's status by waitpid
 *     look      "bad N": bytes of these data that have another value than it has written, or pages that are gone
 *
 * At the end of its input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char __executable_start, etext;

enum { most = 64, page = 4096, filler = 'm' };

static struct {
    char *start;
    size_t size;
} own[most];
static int owned;
static volatile sig_atomic_t ticks;

static void on_tick(int signal) {
    (void)signal;
    ticks++;
}

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n + 1;
}

/* Whose else? This program makes no code. */
static void find_others(void) {
    char line[512], rights[8], path[256];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");

    for (owned = 0; owned < most && fgets(line, sizeof line, maps);) {
        path[0] = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &start, &end, rights, path) < 3) continue;
        if (strchr(rights, 'x') == NULL || path[0] != 0) continue;
        own[owned].start = (char *)start;
        own[owned++].size = end - start;
    }
    fclose(maps);
}

static void take(int away) {
    find_others();
    for (int i = 0; i < owned; i++) {
        if (away) munmap(own[i].start, own[i].size);
        mmap(own[i].start, own[i].size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memset(own[i].start, filler, own[i].size);
    }
}

/* The one that begins with the name of its format. */
static void find_page(void) {
    static const char name[] = "ktrace rescue";
    int pages = 0;

    find_others();
    for (int i = 0; i < owned; i++)
        if (memcmp(own[i].start, name, sizeof name - 1) == 0) own[pages++] = own[i];
    owned = pages;
}

/* The others stay ktrace's. */
static void take_page(void) {
    find_page();
    for (int i = 0; i < owned; i++) {
        mmap(own[i].start, own[i].size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memset(own[i].start, filler, own[i].size);
    }
}

static void make_plain(void) {
    find_page();
    for (int i = 0; i < owned; i++) mprotect(own[i].start, own[i].size, PROT_READ);
}

static void make_endless(void) {
#if defined(__x86_64__)
    static const char call[] = {0x0f, 0x05}, jump[] = {(char)0xeb, (char)0xfe};
#else
    static const char call[] = {0x01, 0x00, 0x00, (char)0xd4}, jump[] = {0x00, 0x00, 0x00, 0x14};
#endif

    find_page();
    for (int i = 0; i < owned; i++) {
        mprotect(own[i].start, own[i].size, PROT_READ | PROT_WRITE);
        for (size_t at = 0; at + sizeof call <= own[i].size; at++)
            if (memcmp(own[i].start + at, call, sizeof call) == 0) memcpy(own[i].start + at, jump, sizeof jump);
        mprotect(own[i].start, own[i].size, PROT_READ | PROT_EXEC);
    }
}

/* All of ktrace's changes go with the pages. */
static void drop(void) {
    const uintptr_t start = (uintptr_t)&__executable_start, end = (uintptr_t)&etext;

    madvise((void *)(start & -page), ((end + page - 1) & -page) - (start & -page), MADV_DONTNEED);
    owned = 1;
}

static void work_for(long times) {
    const struct itimerval khz = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};

    ticks = 0;
    signal(SIGALRM, on_tick);
    setitimer(ITIMER_REAL, &khz, NULL);
    while (ticks < times) do_work(ticks);
    setitimer(ITIMER_REAL, &off, NULL);
}

static long look(void) {
    unsigned char resident;
    long bad = 0;

    for (int i = 0; i < owned; i++)
        for (size_t at = 0; at < own[i].size; at++) {
            if (at % page == 0 && mincore(own[i].start + at, page, &resident) != 0) {
                bad += page;
                at += page - 1;
            } else {
                bad += own[i].start[at] != filler;
            }
        }
    return bad;
}

static int end_of_child(void) {
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        for (long did = 0; did < 10;) did = do_work(did);
        _exit(look() != 0);
    }
    waitpid(child, &status, 0);
    return status;
}

int main(void) {
    char line[64];
    long times;

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "work %ld", &times) == 1) {
            long did = 0;
            while (did < times) did = do_work(did);
            printf("did %ld\n", did);
        } else if (sscanf(line, "ticks %ld", &times) == 1) {
            work_for(times);
            printf("tick %ld\n", times);
        } else if (strcmp(line, "child\n") == 0) {
            printf("chil %d\n", end_of_child());
        } else if (strcmp(line, "look\n") == 0) {
            printf("bad %ld\n", look());
        } else {
            if (strcmp(line, "drop\n") == 0)
                drop();
            else if (strcmp(line, "page\n") == 0)
                take_page();
            else if (strcmp(line, "plain\n") == 0)
                make_plain();
            else if (strcmp(line, "endless\n") == 0)
                make_endless();
            else
                take(strcmp(line, "away\n") == 0);
            printf("%.4s %d\n", line, owned);
        }
    }
    return 0;
}
