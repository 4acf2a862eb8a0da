/* nested: functions whose names in the symbol table are not those of the source. Prints "NAME called N" of each. */
#include <stdio.h>

__attribute__((noinline)) static int apply(int (*f)(int), int x) { return f(x) + f(x + 1); }

__attribute__((noinline)) int outer(int k) {
    int inner(int x) { return x * k; }
    return apply(inner, 10);
}

__attribute__((noinline)) int other(int k) {
    int inner(int x) { return x + k; }
    return apply(inner, 20);
}

__attribute__((noinline)) int my_open(const char *p, int f) __asm__("real_open_impl");
int my_open(const char *p, int f) {
    __asm__ volatile("");
    return f + p[0];
}

int main(void) {
    int sum = outer(3) + other(4) + my_open("a", 3);
    printf("inner called 4\nmy_open called 1\nouter called 1\n");
    return sum == 63 + 49 + 100 ? 0 : 1;
}
