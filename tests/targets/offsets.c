/*
 * offsets: functions made of many kinds of instructions, to be probed at each of them.
 *
 * Prints "ready", and for each line of standard input the results of all functions; at the end of its input it leaves
 * with status 0. The results do not depend on addresses or time: two runs with the same input print the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double table[16];
static long counter;
long (*volatile indirect)(long);

__attribute__((noinline)) long twice(long n) {
    __asm__ volatile("" ::: "memory");
    return 2 * n;
}

/* Jumps, a jump table, calls direct, indirect and through the PLT, rip-relative operands, division. */
__attribute__((noinline)) long branches(long n, const char *text) {
    long sum = counter++ & 1;

    for (long i = 0; i < n; i++) {
        switch (i % 8) {
        case 0: sum += twice(i); break;
        case 1: sum ^= indirect(i); break;
        case 2: sum += (long)strlen(text); break;
        case 3: sum -= text[i % 5]; break;
        case 4: sum = sum * 31 + 7; break;
        case 5: sum /= 3; break;
        case 6: sum %= 100000; break;
        default: sum <<= 1; break;
        }
    }
    return sum;
}

/* SSE arithmetic, conversions, loads and stores of globals. */
__attribute__((noinline)) double floating(double x, float y, int n) {
    for (int i = 0; i < n; i++) {
        table[i % 16] += x * i + y;
        x = x / 1.5 + table[(i + 3) % 16];
        y = (float)x - y;
    }
    return x + y + table[2];
}

/* String instructions with rep, push and pop, flags, bit instructions, x87, cmpxchg, xchg with memory; literals,
 * addresses, and branches on bits, where those are the odd ones. */
__attribute__((noinline)) unsigned long special(unsigned long n, char *buffer, unsigned long size) {
    unsigned long count = size, found = 0, flags = 0, low = n;
    char *to = buffer;
    long double real = (long double)n;
    static unsigned long shared;

#if defined(__x86_64__)
    __asm__ volatile("cld\n\trep stosb" : "+D"(to), "+c"(count) : "a"((int)(n & 0x7f)) : "memory");
    buffer[size / 2] = 1;
    to = buffer;
    count = size;
    __asm__ volatile("repne scasb" : "+D"(to), "+c"(count) : "a"(1) : "cc", "memory");
    found = size - count;
    __asm__ volatile("push %1\n\tpop %0\n\tpushf\n\tpop %%rdx\n\tpush %%rdx\n\tpopf\n\tstc\n\tadc $0, %0"
                     : "=&r"(flags)
                     : "r"(found)
                     : "rdx", "cc", "memory");
    __asm__ volatile("bswap %0\n\trol $13, %0\n\tbtc $3, %0" : "+r"(low)::"cc");
    __asm__ volatile("lock; xaddq %0, %1" : "+r"(n), "+m"(shared)::"cc", "memory");
    __asm__ volatile("jrcxz 1f\n\tnop\n1:\tcall 2f\n2:\tadd $8, %%rsp" ::: "memory", "cc");
#else
    (void)to;
    (void)count;
    __asm__ volatile("strb %w0, [%1]\n\tldrb %w0, [%1]" : "+r"(low) : "r"(buffer) : "memory");
    __asm__ volatile(
        "adr x9, 1f\n\tadrp x10, 1f\n1:\tcmp x9, x10\n\tcset %0, ne\n\tccmp x9, #3, #4, ne\n\tcinc %0, %0, hi"
        : "=&r"(flags)
        :
        : "x9", "x10", "cc");
    __asm__ volatile("rev %0, %0\n\tror %0, %0, #13\n\teor %0, %0, #8" : "+r"(low));
    __asm__ volatile(
        "tbz %0, #3, 1f\n\tcbnz %0, 1f\n\tnop\n1:\tbl 2f\n2:\tldr x9, 3f\n\tb 4f\n3:\t.quad 17\n4:\tadd %0, %0, x9"
        : "+r"(low)
        :
        : "x9", "x30");
    n += __atomic_fetch_add(&shared, n, __ATOMIC_SEQ_CST);
#endif
    real = real * 1.25L + (long double)found;
    return flags + low + n + (unsigned long)real + shared;
}

int main(void) {
    char line[64], buffer[300];

    indirect = twice;
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        for (int i = 0; i < 3; i++)
            printf("branches %ld floating %.17g special %lu\n", branches(40 + i, "probe"), floating(i, 0.5f, 21),
                   special(3 + (unsigned long)i, buffer, sizeof(buffer)));
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
