// The target of the tests of plugins: functions with arguments of every class, structures to follow, an inner function
// that is called with and without an outer one, a fault. It does one thing for each line that it reads, and prints the
// truth.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__clang__)
#define KEEP __attribute__((noinline, weak)) // weak: another definition may take its place, so nothing is known of it
#else
#define KEEP __attribute__((noipa))
#endif

struct device {
    char name[16];
    int index;
};
struct packet {
    struct device *dev;
    unsigned length;
    struct packet *next;
};

struct result {
    int type;
};

KEEP int look_up(unsigned key, struct result *result) {
    result->type = (int)key * 10;
    return (int)key + 1;
}

KEEP int handle(struct packet *packet, unsigned key) {
    struct result result = {0};
    int found = look_up(key, &result);
    return found + result.type + (int)packet->length;
}

KEEP double mixed(int a, double b, const char *c, float d, long e, unsigned char f, void *g, long long h, double i,
                  short j, long double k) {
    return a + b + (double)strlen(c) + d + (double)e + f + (g != NULL) + (double)h + i + j + (double)k;
}

KEEP int do_work(int n) {
    volatile int sum = 0;
    for (int i = 0; i < n; i++) sum += i;
    return sum;
}

// A bug: the length of an empty list is asked for with a wrong sign.
KEEP int checked(int n) { return n < 0 ? -1 : n * 2; }

KEEP int read_at(const int *from) { return *from; }

KEEP long sum_list(const struct packet *list) {
    long sum = 0;
    for (; list; list = list->next) sum += list->length;
    return sum;
}

// The function that the kernel's samples probe; they know its arguments.
KEEP long do_fork(unsigned long flags, unsigned long stack, void *regs, unsigned long size, int *parent, int *child) {
    return (long)flags + 25 + (stack != 0) + (regs != NULL) + (size != 0) + (parent != NULL) + (child != NULL);
}

KEEP int recurse(int n) {
    static int (*volatile again)(int) = recurse;
    return n == 0 ? 0 : 1 + again(n - 1);
}

#ifdef __x86_64__
// Functions whose first instruction raises a trap; they return the same as without it. mov_divides goes on in divides.
__asm__(".text\n"
        ".globl mov_divides, divides, breaks, undefined, reads\n"
        ".type mov_divides, @function\n.type divides, @function\n.type breaks, @function\n"
        ".type undefined, @function\n.type reads, @function\n"
        "mov_divides: movl %edi, %eax\n xorl %edx, %edx\n.size mov_divides, . - mov_divides\n"
        "divides: divl %esi\n ret\n.size divides, . - divides\n"
        "breaks: int3\n movl %edi, %eax\n ret\n.size breaks, . - breaks\n"
        "undefined: ud2\n movl %edi, %eax\n ret\n.size undefined, . - undefined\n"
        "reads: movl (%rdi), %eax\n ret\n.size reads, . - reads\n");
int mov_divides(int n, int by), breaks(int n), undefined(int n), reads(const int *from);

static int raise_trap(int number) {
    switch (number) {
    case 0: return mov_divides(70, 0);
    case 3: return breaks(73);
    case 6: return undefined(76);
    case 13: return reads((const int *)((uintptr_t)1 << 63));
    default: return reads(NULL);
    }
}
#else
static int raise_trap(int number) { return number; }
#endif

static struct device eth0 = {"eth0", 2};
int shared_value = 5;

static struct packet *make_list(int count) {
    struct packet *list = NULL;
    for (int i = 0; i < count; i++) {
        // Each on a page of its own, so that following it touches as many pages as there are packets.
        struct packet *one = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        one->dev = &eth0;
        one->length = (unsigned)i * 3;
        one->next = list;
        list = one;
    }
    return list;
}

static volatile int stop_work;
static void *work(void *count) {
    while (!stop_work) {
        do_work(3);
        ++*(unsigned long *)count;
    }
    return NULL;
}

static void under_load(int threads) {
    pthread_t ids[64];
    unsigned long counts[64] = {0}, sum = 0;
    stop_work = 0;
    for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, &counts[i]);
    puts("loaded");
    char line[64];
    while (fgets(line, sizeof line, stdin) && strcmp(line, "enough\n") != 0) {
    }
    stop_work = 1;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        sum += counts[i];
    }
    printf("worked %lu\n", sum);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    printf("signal %d at %p\n", signal, info->si_addr);
    fflush(stdout);
    _exit(3);
}

static int serve(const char *what, int n) {
    if (strcmp(what, "handle") == 0) {
        struct packet packet = {&eth0, 100, NULL};
        printf("handled %d\n", handle(&packet, (unsigned)n));
    } else if (strcmp(what, "look_up") == 0) {
        struct result result;
        printf("found %d\n", look_up((unsigned)n, &result));
    } else if (strcmp(what, "mixed") == 0) {
        printf("mixed %.17g\n", mixed(-7, 2.5, "three", 4.25f, -5, 6, &eth0, 1LL << 40, -8.5, -9, 10.75L));
    } else if (strcmp(what, "do_work") == 0) {
        for (int i = 0; i < n; i++) do_work(i);
        printf("done %d\n", n);
    } else if (strcmp(what, "checked") == 0) {
        printf("checked %d\n", checked(n));
    } else if (strcmp(what, "read_at") == 0) {
        printf("read %d\n", read_at(n ? &shared_value : NULL));
    } else if (strcmp(what, "trap") == 0) {
        printf("got %d\n", raise_trap(n));
    } else if (strcmp(what, "list") == 0) {
        struct packet *list = make_list(n);
        printf("sum %ld\n", sum_list(list));
    } else if (strcmp(what, "do_fork") == 0) {
        printf("forked %ld\n", do_fork((unsigned long)n, 0, NULL, 0, NULL, NULL));
    } else if (strcmp(what, "recurse") == 0) {
        printf("depth %d\n", recurse(n));
    } else if (strcmp(what, "value") == 0) {
        printf("value %d\n", shared_value);
    } else if (strcmp(what, "time") == 0) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < 100; i++) do_work(n);
        clock_gettime(CLOCK_MONOTONIC, &to);
        printf("took %ld\n", (to.tv_sec - from.tv_sec) * 1000000000L + (to.tv_nsec - from.tv_nsec));
    } else if (strcmp(what, "map") == 0) { // n: the address in units of 64 KiB
        void *at = (void *)((uintptr_t)(unsigned)n << 16);
        void *got = mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        printf("mapped %d\n", got == at);
    } else if (strcmp(what, "load") == 0) {
        under_load(n);
    } else {
        return 0;
    }
    return 1;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    puts("ready");
    char line[64], what[32];
    int n;
    while (fgets(line, sizeof line, stdin))
        if (sscanf(line, "%31s %d", what, &n) != 2 || !serve(what, n)) return 2;
    return 0;
}
