// A compiler's functions, optimized, and the list of all. Each gives the same answer whenever it is called with the
// same arguments and memory.
#if defined(__x86_64__)

#include "tests/isa/x86_64/detoured.h"

#include <csetjmp>
#include <cstring>
#include <utility>

#include "tests/isa/x86_64/detoured_assembly.h"

#define KT_DETOURED [[gnu::section("detoured"), gnu::noinline]]

namespace ktrace::test {

namespace {

using Word = std::uint64_t;

KT_DETOURED Word fibonacci(Word n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KT_DETOURED Word recursion(Word a, Word, Word *) { return fibonacci(a % 10); }

KT_DETOURED Word cases(Word a, Word b, Word *memory) {
    Word sum = 0;
    for (Word i = 0; i < 12; ++i) {
        switch ((a + i) % 11) {
        case 0: sum += b; break;
        case 1: sum ^= memory[i]; break;
        case 2: memory[i] += sum; [[fallthrough]];
        case 3: sum <<= 1; break;
        case 4: sum -= a * b; break;
        case 5: std::swap(memory[1], memory[i]); break;
        case 6: sum = sum % 1000 + 3; break;
        case 7: sum |= 1; break;
        case 8: memory[0] = sum; break;
        default: sum = ~sum;
        }
    }
    return sum;
}

KT_DETOURED Word tail(Word a, Word b, Word *memory) {
    if (a == 0) return b;
    memory[a % detoured_words] += b;
    return (a & 1) != 0 ? cases(a, b, memory) : recursion(a, b, memory);
}

KT_DETOURED Word library(Word a, Word b, Word *memory) {
    char text[64] = {};
    std::memcpy(text, memory, a % 50 + 1);
    text[63] = 0;
    std::memset(memory + 2, static_cast<int>(b), a % 33);
    return std::strlen(text) + static_cast<Word>(std::memcmp(text, memory, 8) != 0);
}

KT_DETOURED double area(double x, double y) {
    double sum = 0;
    for (int i = 1; i < 9; ++i) sum += x / i - y * (x > y ? 0.5 : -0.25);
    return sum;
}
KT_DETOURED Word floats(Word a, Word b, Word *memory) {
    float small[8];
    for (int i = 0; i < 8; ++i) small[i] = static_cast<float>(memory[i] % 100) * 0.5f;
    float total = 0;
    for (float each : small) total += each * each;
    const double x = area(static_cast<double>(a % 1000), static_cast<double>(b % 1000));
    return static_cast<Word>(static_cast<std::int64_t>(x * 16)) + static_cast<Word>(total);
}

struct Failure {
    Word value;
};
KT_DETOURED Word fails(Word a) {
    if (a % 3 == 1) throw Failure{a};
    if (a % 3 == 2) throw static_cast<int>(a);
    return a;
}
struct Undo {
    Word *memory;
    Word by;
    ~Undo() { memory[3] -= by; }
};
KT_DETOURED Word between(Word a, Word *memory) {
    const Undo undo{memory, a};
    memory[3] += 2 * a;
    return fails(a) + 1;
}
KT_DETOURED Word exceptions(Word a, Word b, Word *memory) {
    Word sum = 0;
    for (Word each : {a, b, a + b}) {
        try {
            sum += between(each, memory);
        } catch (const Failure &failure) {
            sum ^= failure.value;
        } catch (int number) {
            sum += static_cast<Word>(number) * 3;
        }
    }
    return sum;
}

jmp_buf way_out;
KT_DETOURED void leaves(Word a) {
    if (a != 0) std::longjmp(way_out, static_cast<int>(a));
}
KT_DETOURED Word jumps_out(Word a, Word b, Word *memory) {
    const int come_back = setjmp(way_out);
    if (come_back != 0) return static_cast<Word>(come_back) + memory[4];
    leaves(a % 4);
    return b;
}

thread_local Word own = 1;
KT_DETOURED Word variables(Word a, Word b, Word *) {
    static Word all[4];
    own = a;
    for (Word i = 0; i < 4; ++i) all[i] = own * i + b;
    own += all[(a + b) % 4];
    return own + all[2];
}

KT_DETOURED Word wide(Word a, Word b, Word *memory) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b + memory[2];
    memory[5] = static_cast<Word>(product >> 64);
    return static_cast<Word>(product / (b | 1));
}

KT_DETOURED Word by_pointer(Word a, Word b, Word *memory) {
    static constexpr Detoured::Call calls[] = {tail, wide, detoured_one, floats, detoured_flags};
    Word sum = 0;
    for (Word i = 0; i < 5; ++i) sum = sum * 31 + calls[(a + i) % 5](a, b + i, memory);
    return sum;
}

KT_DETOURED Word on_stack(Word a, Word b, Word *memory) {
    auto *many = static_cast<Word *>(__builtin_alloca((a % 20 + 1) * sizeof(Word)));
    for (Word i = 0; i <= a % 20; ++i) many[i] = b ^ i;
    memory[6] = many[a % 20];
    return many[0] + many[a % 20];
}

#define KT_ROW(name) {detoured_##name},
constexpr Detoured all[] = {
    // clang-format off
    KT_DETOURED_ASSEMBLY(KT_ROW)
    // clang-format on
    {recursion},
    {cases},
    {tail},
    {library},
    {floats},
    {exceptions, 2},
    {jumps_out},
    {variables},
    {wide},
    {by_pointer},
    {on_stack},
};

} // namespace

std::span<const Detoured> detoured() { return all; }

} // namespace ktrace::test

#endif
