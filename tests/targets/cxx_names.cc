/*
 * cxx_names: C++ functions to be named by a SPEC.
 *
 * Prints "ready", and for each line of standard input calls everything and prints "done"; at the end of its input it
 * leaves with status 0. How often each function runs for one line is in its comment.
 */
#include <cstdio>
#include <string>
#include <vector>

#define KEEP __attribute__((noinline))
#define OPAQUE __asm__ volatile("" ::: "memory")

namespace shop {

struct Money {
    long cents;
};

/* 1 */
KEEP Money operator+(const Money &a, const Money &b) {
    OPAQUE;
    return {a.cents + b.cents};
}

class Till {
  public:
    KEEP explicit Till(long start) : sum_(start) { OPAQUE; } /* 2 */
    KEEP ~Till() { OPAQUE; }                                 /* 2 */
    KEEP void add(int n) {                                   /* 3 */
        OPAQUE;
        sum_ += n;
    }
    KEEP void add(const char *text) { /* 2 */
        OPAQUE;
        sum_ += text[0];
    }
    KEEP long operator()(int n) const { /* 4 */
        OPAQUE;
        return sum_ * n;
    }
    KEEP virtual long total() const { /* 1 */
        OPAQUE;
        return sum_;
    }

  private:
    long sum_;
};

/* largest<int> 2, largest<double> 1 */
template <class T> KEEP T largest(const std::vector<T> &values) {
    OPAQUE;
    T best = values.at(0);
    for (const T &v : values)
        if (best < v) best = v;
    return best;
}

} // namespace shop

/* 2 */
KEEP shop::Money operator+(const shop::Money &a, long more) {
    OPAQUE;
    return {a.cents + more};
}

namespace {

/* 5 */
KEEP int hidden(int n) {
    OPAQUE;
    return n + 1;
}

} // namespace

int main() {
    char line[64];
    std::puts("ready");
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin)) {
        {
            volatile long sink;
            shop::Money m = shop::Money{1} + shop::Money{2};
            m = m + 3L;
            m = m + 4L;
            shop::Till till(m.cents), other(5);
            for (int i = 0; i < 3; i++) till.add(i);
            till.add("a");
            other.add("b");
            for (int i = 0; i < 4; i++) sink = till(i);
            shop::Till *volatile pointer = &till;
            sink = pointer->total();
            sink = shop::largest(std::vector<int>{1, 2}) + shop::largest(std::vector<int>{4});
            sink = static_cast<long>(shop::largest(std::vector<double>{1.5}));
            for (int i = 0; i < 5; i++) sink = hidden(i);
            (void)sink;
        }
        std::puts("done");
        std::fflush(stdout);
    }
    return 0;
}
