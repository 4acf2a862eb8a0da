// Pointers to functions and to members, virtual bases: each call prints its line as ktrace has to.
#include <cstdio>

struct S {
    int a, b;
    int m(int x) { return a + x; }
};
struct Root {
    int id = 7;
};
struct V : virtual Root {
    int v = 8;
};
struct W : virtual Root {
    int w = 6;
};
struct D : V, W {
    int d = 5;
};
struct Table {
    int (*first)(int);
    int (*none)(int);
};
static int twice(int x) { return 2 * x; }

extern "C" {
__attribute__((noinline)) int call(int (*f)(int), int (S::*m)(int), int k) {
    int (S::*method)(int) = m;
    void *words[2];
    __builtin_memcpy(words, &method, sizeof words);
    std::printf("call(f=%p <twice>, m=%p <S::m>, k=%d)\n", reinterpret_cast<void *>(f), words[0], k);
    return f(k);
}
__attribute__((noinline)) int table(Table t, int k) {
    std::printf("table(t={.first=%p <twice>, .none=0x0}, k=%d)\n", reinterpret_cast<void *>(t.first), k);
    return t.first(k);
}
__attribute__((noinline)) int bases(const V &v, const D &d) {
    std::printf("bases(v={.Root={.id=%d}, .v=%d}, d={.V={.Root={.id=%d}, .v=%d}, .W={.Root={.id=%d}, .w=%d}, .d=%d})\n",
                v.id, v.v, d.id, d.v, d.id, d.w, d.d);
    return v.id;
}
__attribute__((noinline)) int data(int S::*p, int S::*q, int S::*none, S &s) {
    std::printf("data(p=&S::b, q=&S::a, none=0x0, s={.a=%d, .b=%d})\n", s.a, s.b);
    return s.*p + s.*q + (none == nullptr);
}
}

int main() {
    V v;
    D d;
    d.id = 9;
    S s{1, 2};
    int sum = call(twice, &S::m, 3) + table({twice, nullptr}, 4) + bases(v, d) + data(&S::b, &S::a, nullptr, s);
    std::fflush(stdout);
    return sum == 0;
}
