// Places against a compiler's own code: a traced child calls real functions with known arguments; the places at their
// first instruction and at their return must hold those arguments and results.
#if defined(__x86_64__)

#include <csignal>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <immintrin.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/isa/x86_64/types.h"
#include "x86_64/native.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace live {

// The functions are called through volatile pointers, so that compilers must keep to the psABI.
struct Mixed {
    long a;
    double b;
};
struct Floats {
    float a, b, c;
};
struct Chars {
    char c[16];
};
struct Large {
    long a, b, c;
};
struct Bits {
    unsigned a : 3;
    unsigned long b : 40;
    double d;
};
struct Empty {};
struct NonTrivial {
    long a;
    explicit NonTrivial(long value) : a(value) {}
    NonTrivial(const NonTrivial &other) : a(other.a) {}
};
struct alignas(16) Aligned {
    long a, b;
};
struct Inner {
    float x;
};
struct Nested {
    Inner a[2];
    int n;
};
union Either {
    double d;
    long l;
};
struct __attribute__((packed)) Packed {
    char c;
    double d;
};
struct LongDouble {
    long double value;
};
struct Vector {
    __m128 v;
};

long many(int, long, char, short, unsigned, long, long a, char b, double) { return a + b; }
double floats(float a, double, double, double, double, double, double, double, double b, int) { return a + b; }
Mixed mixed(Mixed a, int, Mixed b) { return {a.a + b.a, a.b + b.b}; }
Floats three(Floats a, Floats b) { return {a.a + b.a, a.b, b.c}; }
Chars chars(int, int, int, int, int, Chars a, int) { return a; }
Large large(Large a, int b) { return {a.a, a.b + b, a.c}; }
Bits bits(Bits a) { return a; }
int empty(int a, Empty, int b) { return a - b; }
long reference(int, NonTrivial a, NonTrivial b) { return a.a + b.a; }
NonTrivial returned(long a) { return NonTrivial(a + 1); }
long aligned(Large, int, Aligned a, long b) { return a.b + b; }
Nested nested(Nested a) { return a; }
Either either(Either a, double) { return a; }
double packed(Packed a, double b) { return a.d + b; }
long double extended(long double a, Large, long double b) { return a + b; }
LongDouble wrapped(LongDouble a) { return a; }
_Complex double complex(_Complex double a, _Complex float b) { return a + b; }
_Complex long double wide_complex(_Complex long double a) { return a; }
__int128 wide(__int128 a, int, int, int, int, __int128 b, char) { return a + b; }
__m128 vector(__m128 a, Vector b) { return a + b.v; }

} // namespace live

namespace {

using arch::X86_64;
using value::Op;
using value::Piece;
using value::Place;
using value::Type;
using Bytes = std::vector<std::byte>;

template <class C, class T> C make_complex(T real, T imaginary) {
    C made;
    __real__ made = real;
    __imag__ made = imaginary;
    return made;
}

template <class T> Bytes bytes_of(const T &value) {
    const auto view = std::as_bytes(std::span(&value, 1));
    return {view.begin(), view.end()};
}

/// One call to be made in the child.
struct Call {
    std::uint64_t function = 0;
    std::function<void()> make;
    std::vector<const Type *> types;
    std::vector<Bytes> arguments;
    const Type *result_type = nullptr;
    Bytes result;
};

template <class R, class... A>
Call call(R (*function)(A...), const Type *result, std::vector<const Type *> types, A... arguments) {
    R (*volatile pointer)(A...) = function;
    Call made;
    made.function = reinterpret_cast<std::uint64_t>(function);
    made.make = [pointer, arguments...] { (*pointer)(arguments...); };
    made.types = std::move(types);
    made.arguments = {bytes_of(arguments)...};
    made.result_type = result;
    made.result = bytes_of((*pointer)(arguments...));
    return made;
}

class ChildMemory : public Memory {
  public:
    explicit ChildMemory(pid_t child) : child_(child) {}
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        iovec local{into.data(), into.size()}, remote{reinterpret_cast<void *>(at.value), into.size()};
        const ssize_t size = ::process_vm_readv(child_, &local, 1, &remote, 1, 0);
        return size < 0 ? 0 : static_cast<std::size_t>(size);
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }

  private:
    pid_t child_;
};

/// A traced child that makes one call; stops at its function's first instruction and behind its return.
class Caller {
  public:
    explicit Caller(const Call &call) : child_(::fork()), memory_(child_) {
        if (child_ == 0) {
            ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
            ::raise(SIGSTOP);
            call.make();
            ::_exit(0);
        }
        ::waitpid(child_, nullptr, 0);
        ::ptrace(PTRACE_SETOPTIONS, child_, nullptr, PTRACE_O_EXITKILL);
        run_to(call.function);
    }
    ~Caller() {
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }

    void run_to_return() {
        const auto address = X86_64::return_address(regs_, memory_);
        ASSERT_TRUE(address);
        run_to(address->value);
    }

    /// The value in a place; nothing where a piece is unavailable.
    std::optional<Bytes> value(const Place &place, std::size_t size) {
        Bytes bytes;
        for (const Piece &piece : place.pieces) {
            const std::size_t wanted = piece.size != 0 ? piece.size : size - bytes.size();
            const auto part = piece_value(piece, wanted);
            if (!part) return std::nullopt;
            bytes.insert(bytes.end(), part->begin(), part->end());
        }
        return bytes;
    }

  private:
    void run_to(std::uint64_t address) {
        const long original = ::ptrace(PTRACE_PEEKTEXT, child_, address, nullptr);
        ::ptrace(PTRACE_POKETEXT, child_, address, (original & ~0xffL) | 0xcc);
        ::ptrace(PTRACE_CONT, child_, nullptr, nullptr);
        int status = 0;
        ::waitpid(child_, &status, 0);
        ASSERT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
        ::ptrace(PTRACE_POKETEXT, child_, address, original);
        ASSERT_TRUE(arch::X86_64Native::read_registers(Tid{child_}, regs_));
        ASSERT_TRUE(arch::X86_64Native::read_floating(Tid{child_}, floating_));
        regs_.ip = X86_64::trap_address(VirtAddr{regs_.ip}).value;
        ASSERT_EQ(regs_.ip, address);
        ASSERT_TRUE(arch::X86_64Native::write_registers(Tid{child_}, regs_));
    }

    Bytes register_bytes(int dwarf) const {
        for (const arch::RegisterInfo &info : X86_64::registers()) {
            if (info.dwarf != dwarf) continue;
            const bool is_general = info.file == arch::RegisterInfo::File::general;
            const auto file =
                is_general ? std::as_bytes(std::span(&regs_, 1)) : std::as_bytes(std::span(&floating_, 1));
            const auto bytes = file.subspan(info.offset, info.width);
            return {bytes.begin(), bytes.end()};
        }
        return {};
    }

    std::optional<Bytes> piece_value(const Piece &piece, std::size_t size) {
        if (piece.kind == Piece::Kind::not_known) return std::nullopt;
        if (piece.kind == Piece::Kind::bytes) return Bytes(size);
        if (piece.kind == Piece::Kind::register_) {
            Bytes bytes = register_bytes(piece.reg);
            if (bytes.size() < size) return std::nullopt;
            bytes.resize(size);
            return bytes;
        }
        std::uint64_t address = 0;
        for (const Op &op : piece.ops) {
            if (op.code == Op::Code::push_register) {
                std::memcpy(&address, register_bytes(op.reg).data(), sizeof address);
                address += static_cast<std::uint64_t>(op.operand);
            } else if (op.code == Op::Code::deref) {
                address = memory_.read_value<std::uint64_t>(VirtAddr{address}).value_or(0);
            }
        }
        Bytes bytes(size);
        if (memory_.read(VirtAddr{address}, bytes) != size) return std::nullopt;
        return bytes;
    }

    pid_t child_;
    ChildMemory memory_;
    arch::X86_64Registers regs_;
    arch::X86_64FpRegisters floating_;
};

/// Calls `visit` with offset and size of every scalar of a type: the bytes that are no padding.
void visit_scalars(const Type &type, std::size_t offset, const std::function<void(std::size_t, std::size_t)> &visit) {
    if (type.kind == Type::Kind::structure || type.kind == Type::Kind::union_) {
        for (const value::Member &member : type.members)
            if (member.bit_size == 0) visit_scalars(*member.type, offset + member.offset, visit);
    } else if (type.kind == Type::Kind::array || type.kind == Type::Kind::complex) {
        for (std::size_t at = 0; at < type.size; at += type.target->size)
            visit_scalars(*type.target, offset + at, visit);
    } else {
        visit(offset, type.name == "long double" ? 10 : type.size);
    }
}

void expect_same(const Type &type, const Bytes &wanted, const std::optional<Bytes> &got, const std::string &what) {
    ASSERT_TRUE(got) << what;
    ASSERT_EQ(got->size(), wanted.size()) << what;
    visit_scalars(type, 0, [&](std::size_t offset, std::size_t size) {
        EXPECT_EQ(std::memcmp(wanted.data() + offset, got->data() + offset, size), 0) << what << " at " << offset;
    });
}

class X86PsabiLive : public ::testing::Test {
  protected:
    void check(const Call &call) {
        Caller caller(call);
        const auto places = X86_64::parameter_places(call.types, call.result_type);
        ASSERT_EQ(places.size(), call.arguments.size());
        for (std::size_t i = 0; i < places.size(); ++i)
            expect_same(*call.types[i], call.arguments[i], caller.value(places[i], call.types[i]->size),
                        "argument " + std::to_string(i));
        caller.run_to_return();
        const Place result = X86_64::result_place(call.result_type);
        expect_same(*call.result_type, call.result, caller.value(result, call.result_type->size), "result");
    }

    Types t;
    const Type *i1 = t.integer(1), *i2 = t.integer(2), *i4 = t.integer(4), *i8 = t.integer(8), *i16 = t.integer(16);
    const Type *f4 = t.floating(4), *f8 = t.floating(8), *ld = t.long_double();
    const Type *m128 = t.array(f4, 4, true);
};

TEST_F(X86PsabiLive, Scalars) {
    check(call(live::many, i8, {i4, i8, i1, i2, i4, i8, i8, i1, f8}, 1, 2l, '3', short{4}, 5u, 6l, 7l, '8', 9.5));
    check(call(live::floats, f8, {f4, f8, f8, f8, f8, f8, f8, f8, f8, i4}, 1.5f, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0,
               10));
    check(call(live::wide, i16, {i16, i4, i4, i4, i4, i16, i1}, __int128{1} << 100, 1, 2, 3, 4, __int128{-5}, 'x'));
}

TEST_F(X86PsabiLive, StructsInRegisters) {
    const Type *mixed = t.record({i8, f8}), *floats = t.record({f4, f4, f4}), *chars = t.record({t.array(i1, 16)});
    check(call(live::mixed, mixed, {mixed, i4, mixed}, {1, 2.5}, 3, {4, 5.5}));
    check(call(live::three, floats, {floats, floats}, {1, 2, 3}, {4, 5, 6}));
    check(call(live::chars, chars, {i4, i4, i4, i4, i4, chars, i4}, 1, 2, 3, 4, 5, {"fifteen letters"}, 6));
    const Type *nested = t.record({t.array(t.record({f4}), 2), i4});
    check(call(live::nested, nested, {nested}, {{{1.5f}, {2.5f}}, 3}));
    live::Either either;
    either.d = 1.25;
    const Type *choice = t.union_of({f8, i8});
    check(call(live::either, choice, {choice, f8}, either, 2.0));
}

TEST_F(X86PsabiLive, StructsInMemory) {
    const Type *large = t.record({i8, i8, i8});
    check(call(live::large, large, {large, i4}, {1, 2, 3}, 4));
    Type *aligned = t.record({i8, i8});
    aligned->alignment = 16;
    check(call(live::aligned, i8, {large, i4, aligned, i8}, {1, 2, 3}, 4, {5, 6}, 7l));
    check(call(live::packed, f8, {t.packed({i1, f8}), f8}, {'a', 1.5}, 2.5));
}

TEST_F(X86PsabiLive, BitFields) {
    Type *bits = t.record({i4, i8, f8});
    bits->size = 16;
    bits->members[0].bit_size = 3;
    bits->members[1].offset = 0;
    bits->members[1].bit_offset = 3;
    bits->members[1].bit_size = 40;
    bits->members[2].offset = 8;
    check(call(live::bits, bits, {bits}, {5, 123456789012ul, 1.5}));
}

TEST_F(X86PsabiLive, Classes) {
    check(call(live::empty, i4, {i4, t.empty(), i4}, 7, {}, 3));
    Type *non_trivial = t.record({i8});
    non_trivial->by_reference = true;
    check(call(live::reference, i8, {i4, non_trivial, non_trivial}, 1, live::NonTrivial(20), live::NonTrivial(300)));
    check(call(live::returned, non_trivial, {i8}, 41l));
}

TEST_F(X86PsabiLive, LongDoublesAndComplexNumbers) {
    const Type *large = t.record({i8, i8, i8});
    check(call(live::extended, ld, {ld, large, ld}, 1.5L, {1, 2, 3}, 2.25L));
    const Type *wrapped = t.record({ld});
    check(call(live::wrapped, wrapped, {wrapped}, {3.5L}));
    const Type *complex = t.complex(f8), *small = t.complex(f4), *wide = t.complex(ld);
    const _Complex double a = make_complex<_Complex double>(1.5, 2.5);
    const _Complex float b = make_complex<_Complex float>(3.5f, 4.5f);
    check(call(live::complex, complex, {complex, small}, a, b));
    check(call(live::wide_complex, wide, {wide}, make_complex<_Complex long double>(1.5L, 2.5L)));
}

TEST_F(X86PsabiLive, Vectors) {
    check(call(live::vector, m128, {m128, t.record({m128})}, _mm_set_ps(4, 3, 2, 1), {_mm_set_ps(8, 7, 6, 5)}));
}

} // namespace

} // namespace ktrace::test

#endif
