// bases: casts of pointers between classes and their bases. Prints what each of them finds.
#include <cstdio>

struct A {
    int a = 1;
    virtual ~A() {}
};
struct B {
    int b = 2;
    virtual int go(int k) { return k; }
};
struct C : A, B {
    int c = 3;
};
struct D : C {
    int d = 4;
};

__attribute__((noinline)) int f(B *p, D *r, B *none) {
    std::printf("f(c=%d, d=%d, b=%d, none=%d)\n", static_cast<C *>(p)->c, static_cast<D *>(p)->d,
                static_cast<B *>(r)->b, static_cast<C *>(none) == nullptr);
    std::fflush(stdout);
    return p->go(1);
}

int main() {
    D d;
    return f(&d, &d, nullptr) == 0;
}
