/* jumps_back: functions that jump to their own first instruction. Prints "NAME called N turns M" of each: how often it
   was called, and how often its first instruction was executed. */
#include <pthread.h>
#include <stdio.h>

#define PROBED __attribute__((noinline))

struct node {
    struct node *next;
    long v;
};

/* A loop whose head is the entry, as x86's compilers make it; on arm64 the argument is first moved. */
#if defined(__x86_64__)
enum { turns = 15 };
#else
enum { turns = 3 };
#endif
PROBED struct node *tail_of(struct node *n) {
    while (n->next) n = n->next;
    return n;
}

/* A call of itself, which the compiler has made a jump; the entry changes the argument. */
#if defined(__x86_64__)
#define COUNT_DOWN "  sub $1, %rdi\n  test %rdi, %rdi\n  jz 1f\n  jmp count_down\n1: mov $7, %eax\n  ret\n"
#else
#define COUNT_DOWN "  subs x0, x0, #1\n  b.eq 1f\n  b count_down\n1: mov x0, #7\n  ret\n"
#endif
__asm__(".text\n.globl count_down\n.type count_down, %function\n"
        "count_down:\n" COUNT_DOWN ".size count_down, . - count_down\n");
long count_down(long n);

/* One that calls itself in earnest: each is a call. */
PROBED long depth(long n) {
    if (n == 0) return 0;
    long below = depth(n - 1);
    __asm__ volatile("" : "+r"(below));
    return below + 1;
}

static pthread_spinlock_t lock;
static long held;

static void *contend(void *unused) {
    for (int i = 0; i < 50; i++) {
        pthread_spin_lock(&lock);
        held++;
        for (volatile int k = 0; k < 3000; k++) {
        }
        pthread_spin_unlock(&lock);
    }
    return unused;
}

int main(void) {
    struct node nodes[5] = {{nodes + 1, 4}, {nodes + 2, 3}, {nodes + 3, 2}, {nodes + 4, 1}, {NULL, 0}};
    long sums = 0;
    for (int i = 0; i < 3; i++) sums += tail_of(nodes)->v + count_down(6) + depth(2);
    printf("tail_of called 3 turns %d\ncount_down called 3 turns 18\ndepth called 9 turns 9\n", turns);
    pthread_spin_init(&lock, 0);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, contend, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("pthread_spin_lock called %ld turns 0\n", held);
    return sums == 3 * (0 + 7 + 2) ? 0 : 1;
}
