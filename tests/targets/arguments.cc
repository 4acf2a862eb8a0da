/*
 * arguments: functions with parameters and results of every class of the psABI, called with values that are known.
 *
 * Prints "ready", and for each line of standard input calls each function once; at the end of its input it leaves with
 * status 0. Every function is checked by its caller: status 3 where a result is wrong.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#if defined(__x86_64__)
#include <emmintrin.h>
#else
typedef long long __m128i __attribute__((vector_size(16)));
static __m128i _mm_set_epi64x(long long high, long long low) { return __m128i{low, high}; }
static __m128i _mm_add_epi64(__m128i a, __m128i b) { return a + b; }
static long long _mm_cvtsi128_si64(__m128i a) { return a[0]; }
#endif
#include <sys/mman.h>

/* Functions as other files would call them: no optimizer may know their bodies at the calls. */
#if defined(__clang__)
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noipa))
#endif
#define KEEP extern "C" ALONE
#define OPAQUE __asm__ volatile("" ::: "memory")

enum Color { RED, GREEN = 5, BLUE = -2 };
enum class Level : unsigned char { low = 1, high = 200 };

struct Pair {
    int x, y;
};
struct Real {
    double re, im;
};
struct Mixed {
    long n;
    double d;
};
struct Large {
    long a[4];
    const char *name;
};
struct Bits {
    unsigned a : 3;
    int b : 5;
    unsigned long c : 33;
};
union Either {
    int i;
    float f;
};
struct Node {
    int value;
    Node *next;
    const char *label;
};
struct Grid {
    short cells[2][3];
    char text[8];
    Color color;
    bool on;
};

KEEP int8_t take_small(int8_t a, uint8_t b, int16_t c, uint16_t d) {
    OPAQUE;
    return static_cast<int8_t>(a + (b == 200 && c == -300 && d == 60000 ? 1 : 0));
}
KEEP uint64_t take_wide(int32_t a, uint32_t b, int64_t c, uint64_t d) {
    OPAQUE;
    return d + (a == -7 && b == 4000000000U && c == INT64_MIN ? 0 : 1);
}
KEEP bool take_scalars(bool yes, char c, Color color, Level level, const void *p) {
    OPAQUE;
    return yes && c == 'k' && color == BLUE && level == Level::high && p != nullptr;
}
KEEP Color give_color(int n) {
    OPAQUE;
    return n == 1 ? GREEN : RED;
}
KEEP char give_char(int n) {
    OPAQUE;
    return static_cast<char>('a' + n);
}
KEEP double take_floats(float f, double d, long double l) {
    OPAQUE;
    return static_cast<double>(l) + d + static_cast<double>(f);
}
KEEP float give_float(double d) {
    OPAQUE;
    return static_cast<float>(d) / 2;
}
KEEP long double give_long_double(int n) {
    OPAQUE;
    return n + 0.25L;
}
KEEP const char *take_texts(const char *plain, const char *odd, const char *none, const char *wild, const char *edge,
                            char *bytes) {
    OPAQUE;
    return plain + (odd && !none && wild && edge && bytes ? 1 : 0);
}
KEEP Pair take_pair(Pair p, Real r) {
    OPAQUE;
    return {p.y + static_cast<int>(r.im), p.x + static_cast<int>(r.re)};
}
KEEP Real give_real(Real r, int by) {
    OPAQUE;
    return {r.re * by, r.im};
}
KEEP Mixed take_mixed(Mixed m) {
    OPAQUE;
    return {m.n + 1, m.d * 2};
}
KEEP Large take_large(Large l, int n) {
    OPAQUE;
    l.a[3] += n;
    return l;
}
KEEP int take_bits(Bits b, Either e) {
    OPAQUE;
    return static_cast<int>(b.a) + b.b + static_cast<int>(b.c) + e.i;
}
KEEP int take_node(Node *node, const Grid *grid) {
    OPAQUE;
    return node->value + grid->cells[1][2];
}
KEEP long take_ten(long a, int b, short c, char d, unsigned e, long f, int g, short h, double i, unsigned char j) {
    OPAQUE;
    return a + b + c + d + e + f + g + h + static_cast<long>(i) + j;
}
KEEP void take_nothing() { OPAQUE; }
KEEP void give_nothing(int n) { __asm__ volatile("" : : "r"(n) : "memory"); }
KEEP __m128i take_vector(__m128i v, int n) {
    OPAQUE;
    return _mm_add_epi64(v, _mm_set_epi64x(0, n));
}
KEEP __int128 take_huge(__int128 n, int by) {
    OPAQUE;
    return n + by;
}
/* 3 arguments beyond the registers, one of them a structure. */
KEEP long take_stacked(long a, long b, long c, long d, long e, Large l, Mixed m, Mixed n, const char *text) {
    OPAQUE;
    return a + b + c + d + e + l.a[0] + m.n + n.n + text[0] + static_cast<long>(m.d + n.d);
}
/* Its argument is changed at once: at an instruction in the middle it is another one than at the entry. */
KEEP int middle(int n) {
    int local = n * 2;
    OPAQUE;
    n += local; /* line of middle */
    __asm__ volatile("" : "+r"(n), "+r"(local) : : "memory");
    return n + local;
}
/* Its parameters are changed before it returns: a return probe shows what they were. */
KEEP long changes(long n, const char *text) {
    for (int i = 0; i < 3; i++) n = n * 2 + text[0];
    text = "other";
    OPAQUE;
    return n + text[0];
}

class Account {
  public:
    Account(std::string owner, long cents) : owner_(std::move(owner)), cents_(cents) {}
    ALONE long pay(const std::string &to, long cents, const Pair &where, int &times) {
        OPAQUE;
        times += where.x - 2;
        cents_ -= cents + (to.empty() ? 1 : 0);
        return cents_;
    }
    ALONE bool is_owned_by(std::string whom, std::string_view part) const {
        OPAQUE;
        return owner_ == whom && whom.find(part) == 0;
    }
    ALONE std::string owner() const {
        OPAQUE;
        return owner_;
    }

  private:
    std::string owner_;
    long cents_;
};

namespace {

void check(bool right) {
    if (!right) std::exit(3);
}

/* A text whose last byte is the last of its page, without a zero byte behind it. */
const char *at_page_end() {
    char *page = static_cast<char *>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::munmap(page + 4096, 4096);
    std::memcpy(page + 4092, "edge", 4);
    return page + 4092;
}

void call_all(const char *edge) {
    static const char odd[] = "tab\t quote\" back\\ bell\a \xff\xc3\xa9 esc\x1b[31m";
    static Node second{2, nullptr, "second"}, first{1, &second, "first"};
    static const Grid grid{{{1, 2, 3}, {4, 5, -6}}, "grid", GREEN, true};
    char bytes[4] = {'r', 'a', 'w', 0};
    check(take_small(-5, 200, -300, 60000) == -4);
    check(take_wide(-7, 4000000000U, INT64_MIN, UINT64_MAX) == UINT64_MAX);
    check(take_scalars(true, 'k', BLUE, Level::high, &grid));
    check(give_color(1) == GREEN && give_char(2) == 'c');
    check(take_floats(1.5F, -2.25, 3.5L) == 2.75);
    check(give_float(5.0) == 2.5F && give_long_double(7) == 7.25L);
    check(take_texts("plain", odd, nullptr, reinterpret_cast<const char *>(0x10), edge, bytes) != nullptr);
    check(take_pair({1, 2}, {0.5, 40.0}).x == 42);
    check(give_real({1.5, -2.0}, 3).re == 4.5);
    check(take_mixed({41, 0.125}).n == 42);
    check(take_large({{1, 2, 3, 4}, "large"}, 6).a[3] == 10);
    Either either;
    either.i = 7;
    check(take_bits({5, -3, 1UL << 32U}, either) == 9);
    check(take_node(&first, &grid) == -5);
    check(take_ten(1, 2, 3, 4, 5, 6, 7, 8, 9.0, 10) == 55);
    take_nothing();
    give_nothing(3);
    check(changes(5, "a") == 5 * 8 + 97 * 7 + 'o');
    Account account("someone with a long name that is not kept inside", 1000);
    int times = 4;
    check(account.pay("a shop", 58, {3, 4}, times) == 942 && times == 5);
    check(account.owner().size() > 20);
    check(account.is_owned_by(account.owner(), "someone"));
    check(_mm_cvtsi128_si64(take_vector(_mm_set_epi64x(7, -5), 4)) == -1);
    check(take_huge(static_cast<__int128>(1) << 100, -1) == (static_cast<__int128>(1) << 100) - 1);
    check(take_stacked(1, 2, 3, 4, 5, {{6, 7, 8, 9}, "large"}, {10, 0.5}, {11, 1.5}, "A") == 109);
    check(middle(5) == 25);
}

} // namespace

int main() {
    char line[64];
    const char *edge = at_page_end();
    std::puts("ready");
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin)) {
        call_all(edge);
        std::puts("done");
        std::fflush(stdout);
    }
    return 0;
}
