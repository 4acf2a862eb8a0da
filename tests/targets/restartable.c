/*
 * restartable THREADS: counts by restartable sequences (rseq(2)), one counter a processor, in threads that do hardly
 * anything else.
 *
 * Prints "ready PID START END HANDLER", offsets in count_one of the sequence in it, of what is behind that, and of
 * where it goes on when it is broken off, or "none" where there are no such sequences; at a line, "counted N found M",
 * where N is how often a sequence was done to its end, and M the sum of the counters. They differ where one went on
 * that had been broken off.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define RESTARTABLE 1
#endif
#endif

enum { most_threads = 64, processors = 1024 };

volatile long stop;
static long counted[most_threads];

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

#if RESTARTABLE

static volatile long counters[processors][8] __attribute__((aligned(64)));
extern const struct rseq_cs sequence_of_count_one;

/* 1: counted; 0: broken off. The sequence is long, so that a stop mostly finds the thread there. */
__attribute__((noinline)) static int count_one(void) {
    struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);

    __asm__ goto volatile(".pushsection __rseq_cs, \"aw\"\n"
                          ".balign 32\n"
                          "sequence_of_count_one:\n"
                          "3: .long 0, 0\n"
                          ".quad 1f, 2f - 1f, 4f\n"
                          ".popsection\n"
                          "leaq 3b(%%rip), %%rax\n"
                          "movq %%rax, %c[sequence](%[area])\n"
                          "1: movl %c[processor](%[area]), %%eax\n"
                          "shlq $6, %%rax\n"
                          "movq (%[counters], %%rax), %%rcx\n"
                          "movl $200, %%edx\n"
                          "5: decl %%edx\n"
                          "jnz 5b\n"
                          "addq $1, %%rcx\n"
                          "movq %%rcx, (%[counters], %%rax)\n"
                          "2:\n"
                          ".pushsection .text.unlikely, \"ax\"\n"
                          ".byte 0x0f, 0xb9, 0x3d\n"
                          ".long 0x53053053\n" // RSEQ_SIG, as the kernel wants it before an abort handler
                          "4: jmp %l[broken_off]\n"
                          ".popsection\n"
                          :
                          : [area] "r"(area), [counters] "r"(counters), [sequence] "i"(offsetof(struct rseq, rseq_cs)),
                            [processor] "i"(offsetof(struct rseq, cpu_id))
                          : "rax", "rcx", "rdx", "memory", "cc"
                          : broken_off);
    return 1;
broken_off:
    return 0;
}

static int is_there(void) { return __rseq_size != 0; }
static void tell(void) {
    long start = (long)sequence_of_count_one.start_ip - (long)count_one;

    printf("ready %d %ld %ld %ld\n", (int)getpid(), start, start + (long)sequence_of_count_one.post_commit_offset,
           (long)sequence_of_count_one.abort_ip - (long)count_one);
}
static long found(void) {
    long sum = 0;

    for (int i = 0; i < processors; i++) sum += counters[i][0];
    return sum;
}

#else

static int count_one(void) { return 0; }
static int is_there(void) { return 0; }
static void tell(void) {}
static long found(void) { return 0; }

#endif

static void *go_on(void *arg) {
    long self = (long)arg;

    while (!stop) {
        counted[self] += count_one();
        if (counted[self] % 1024 == 0) do_work(counted[self]);
    }
    return NULL;
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 1, sum = 0;
    pthread_t ids[most_threads];
    char line[64];

    if (threads > most_threads) return 2;
    if (!is_there()) {
        printf("none\n");
        return 0;
    }
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, go_on, (void *)i);
    tell();
    fflush(stdout);
    if (fgets(line, sizeof(line), stdin)) stop = 1;
    for (long i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    for (long i = 0; i < threads; i++) sum += counted[i];
    printf("counted %ld found %ld\n", sum, found());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) continue;
    return 0;
}
