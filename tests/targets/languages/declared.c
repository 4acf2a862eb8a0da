/*
 * declared: calls functions of a library that has no debug information, and prints the lines of these calls as ktrace
 * has to. With -DLIBRARY it is that library.
 */
#include <stdio.h>

struct point {
    int x, y;
};
enum mode { quiet, loud };

int scaled(int by, double of, const char *name);
enum mode moded(const struct point *p, unsigned char c);
float halved(float f);

#ifdef LIBRARY
int scaled(int by, double of, const char *name) { return by * (int)of - name[0]; }
enum mode moded(const struct point *p, unsigned char c) { return p->x == c ? loud : quiet; }
float halved(float f) { return f / 2; }
#else
int main(void) {
    volatile int by = -3;
    struct point p = {200, 2};
    int sum = scaled(by, 2.5, "a") + (int)moded(&p, 200) + (int)halved(3);
    printf("scaled(arg0=-3, arg1=2.5, arg2=\"a\") returned -103\n");
    printf("moded(arg0={.x=200, .y=2}, arg1='\\xc8') returned loud\n");
    printf("halved(arg0=3) returned 1.5\n");
    return sum == 0;
}
#endif
