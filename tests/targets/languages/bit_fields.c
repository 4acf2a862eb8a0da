/* bit_fields: bit fields of packed and other structures, by pointer and by value. Prints the lines of its calls. */
#include <stdio.h>

struct __attribute__((packed)) crossing {
    int k;
    char pad;
    int m : 25;
};
struct __attribute__((packed)) several {
    char c;
    short s;
    int m : 25;
    int n : 20;
    int o : 30;
};
struct plain {
    unsigned a : 3;
    int b : 17;
    long c : 40;
    _Bool d : 1;
};
struct __attribute__((packed)) wide {
    unsigned char a : 5;
    long b : 62;
    unsigned c : 5;
};

__attribute__((noinline)) int by_pointer(struct crossing *c, struct several *s, struct plain *p, struct wide *w) {
    __asm__ volatile("" : : "r"(c), "r"(s), "r"(p), "r"(w) : "memory");
    return c->k + s->c + p->b + (int)w->b;
}
__attribute__((noinline)) int by_value(struct crossing c, int between, struct plain p, struct several s, int last) {
    return c.k + s.c + (int)p.c + between + last;
}

int main(void) {
    struct crossing c = {1, 2, 8239493};
    struct several s = {1, 2, -8239493, -400000, 500000001};
    struct plain p = {5, -65000, -500000000000, 1};
    struct wide w = {17, -2305843009213693000, 21};
    printf("by_pointer(c={.k=1, .pad='\\x02', .m=%d}, s={.c='\\x01', .s=2, .m=%d, .n=%d, .o=%d}, "
           "p={.a=%d, .b=%d, .c=%ld, .d=true}, w={.a=%d, .b=%ld, .c=%d})\n",
           c.m, s.m, s.n, s.o, p.a, p.b, (long)p.c, w.a, (long)w.b, w.c);
    printf("by_value(c={.k=1, .pad='\\x02', .m=%d}, between=7, p={.a=%d, .b=%d, .c=%ld, .d=true}, "
           "s={.c='\\x01', .s=2, .m=%d, .n=%d, .o=%d}, last=8)\n",
           c.m, p.a, p.b, (long)p.c, s.m, s.n, s.o);
    fflush(stdout);
    return by_pointer(&c, &s, &p, &w) + by_value(c, 7, p, s, 8) == 0;
}
