/* sizes: structures that have texts, and arrays whose size only the program knows. Prints what has to be shown. */
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline))
#define KEEP(x) __asm__ volatile("" : : "r"(x) : "memory")

struct message {
    int count;
    const char *name;
    int data[];
};

struct named {
    const char *label;
    char *none;
    int n;
};

APART void by_value(struct named o, struct named *p) {
    KEEP(&o);
    KEEP(p);
    printf("by_value(o={.label=\"%s\", .none=0x0, .n=%d}, *p={.label=\"%s\", .none=0x0, .n=%d})\n", o.label, o.n,
           p->label, p->n);
}

APART void flexible(struct message *m) {
    KEEP(m);
    printf("flexible(m->count=%d, m->name=\"%s\", m->data[2]=%d)\n", m->count, m->name, m->data[2]);
}

APART int variable(int n, int rows, int a[rows][n]) {
    int b[n];
    for (int i = 0; i < n; i++) b[i] = i * 10 + a[0][i];
    KEEP(b); /* here */
    return b[n - 1] + a[rows - 1][0];
}

int main(void) {
    struct named o = {"one", NULL, 1}, p = {"two", NULL, 2};
    struct message *m = malloc(sizeof *m + 4 * sizeof(int));
    m->count = 4;
    m->name = "some";
    for (int i = 0; i < 4; i++) m->data[i] = i * i;
    int a[2][3] = {{1, 2, 3}, {4, 5, 6}};
    by_value(o, &p);
    flexible(m);
    return variable(3, 2, a) == 0;
}
