// member_pointers: pointers to members, and parameters behind them. Prints the lines of its calls as ktrace has to.
#include <cstdio>
#include <cstring>

struct S {
    int a, b;
    int m(int x) { return a + x; }
    virtual int v(int x) { return b + x; }
};
struct Held {
    int (S::*p)(int);
};
struct Words {
    unsigned long ptr;
    long adj;
};

template <class T> static Words words(const T &pointer) {
    Words made;
    std::memcpy(&made, &pointer, sizeof made);
    return made;
}

extern "C" {
__attribute__((noinline)) int function(int (S::*p)(int), int k, S &s) {
    __asm__ volatile("" : : "r"(&s) : "memory");
    return (s.*p)(k);
}
__attribute__((noinline)) int held(Held h, int k) {
    __asm__ volatile("");
    return h.p != nullptr ? k : 0;
}
__attribute__((noinline)) int data(int S::*p, int k, S &s) {
    __asm__ volatile("" : : "r"(&s) : "memory");
    return s.*p + k;
}
}

int main() {
    S s{};
    const Words m = words(&S::m), v = words(&S::v);
    std::printf("function(p=%#lx <S::m>, k=8)\nfunction(p={.ptr=0x%lx, .adj=%ld}, k=9)\n", m.ptr, v.ptr, v.adj);
    std::printf("held(h={.p=%#lx <S::m>}, k=10)\n", m.ptr);
    std::printf("data(p=&S::b, k=11)\n");
    std::fflush(stdout);
    return function(&S::m, 8, s) + function(&S::v, 9, s) + held({&S::m}, 10) + data(&S::b, 11, s) == 0;
}
