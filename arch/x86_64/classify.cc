// Classify: the classification of the x86-64 System V psABI, 3.2.3, in full. A value is cut into eightbytes, and each
// gets the class that its scalars merge to.
//
// Invariants: types come from debug information that may be crafted, so every walk through one has bounds.
#include "x86_64/classify.h"

#include <algorithm>

namespace ktrace::arch::x86 {

namespace {

using value::Member;
using value::Type;

constexpr std::uint64_t x87_bytes = 10, most_in_two_registers = 16;

bool is_integer_like(const Type &type) {
    switch (type.kind) {
    case Type::Kind::bool_:
    case Type::Kind::char_:
    case Type::Kind::integer:
    case Type::Kind::enumeration:
    case Type::Kind::pointer:
    case Type::Kind::reference: return true;
    default: return false;
    }
}

/// long double, as opposed to __float128 and _Decimal128, which have its size.
bool is_x87(const Type &type) {
    if (type.kind != Type::Kind::floating || type.size < x87_bytes) return false;
    for (const char *other : {"128", "kind=16", "quad", "Quad"})
        if (type.name.find(other) != std::string::npos) return false;
    return true;
}

bool is_complex_x87(const Type &type) {
    if (type.kind != Type::Kind::complex) return false;
    return type.target != nullptr ? is_x87(*type.target) : type.size > most_in_two_registers;
}

/// Merges the class of one field into that of its eightbyte (psABI 3.2.3, classification, step 4).
Class merged(Class a, Class b) {
    if (a == b || b == Class::none) return a;
    if (a == Class::none) return b;
    if (a == Class::memory || b == Class::memory) return Class::memory;
    if (a == Class::integer || b == Class::integer) return Class::integer;
    auto is_x87_class = [](Class c) { return c == Class::x87 || c == Class::x87up || c == Class::complex_x87; };
    if (is_x87_class(a) || is_x87_class(b)) return Class::memory;
    return Class::sse;
}

/// Classifies one object, by walking through its scalars.
class Classifier {
  public:
    explicit Classifier(const Type &type) : size_(type.size) {
        if (size_ > eightbyte * most_eightbytes) {
            to_memory();
            return;
        }
        classes_.count = (size_ + eightbyte - 1) / eightbyte;
        add(type, 0, /*depth=*/0);
        if (classes_.unknown && !may_be_vector_ && is_record(type) && size_ > most_in_two_registers) {
            classes_.unknown = false; // whatever is in there: it is not one vector
            to_memory();
        }
        if (!classes_.unknown) clean_up();
    }

    const Classes &classes() const { return classes_; }

  private:
    static constexpr int most_depth = 16;
    static constexpr int most_scalars = 1024;

    void to_memory() {
        classes_.count = 1;
        classes_.of[0] = Class::memory;
        in_memory_ = true;
    }

    /// The object is in memory with one compiler, and in registers with another.
    void differ() {
        in_memory_ = false;
        classes_.unknown = true;
    }

    void add(const Type &type, std::uint64_t offset, int depth) {
        if (classes_.unknown || in_memory_) return;
        if (depth > most_depth || ++visited_ > most_scalars) {
            classes_.unknown = true;
        } else if (type.incomplete) {
            classes_.unknown = true;
        } else if (is_integer_like(type)) {
            add_scalar(Class::integer, Class::integer, offset, type.size);
        } else if (type.kind == Type::Kind::floating) {
            add_floating(type, offset);
        } else if (type.kind == Type::Kind::complex) {
            add_complex(type, offset, depth);
        } else if (type.kind == Type::Kind::array) {
            add_array(type, offset, depth);
        } else if (is_record(type)) {
            for (const Member &member : type.members) add_member(member, offset, depth);
        } else if (type.kind == Type::Kind::unknown && type.size != 0 && type.size <= eightbyte) {
            add_scalar(Class::integer, Class::integer, offset, type.size); // decltype(nullptr)
        } else {
            classes_.unknown = true;
        }
    }

    /// A scalar whose first eightbyte is of class `first`, the others of `rest`.
    void add_scalar(Class first, Class rest, std::uint64_t offset, std::uint64_t size) {
        if (size == 0) return;
        const std::uint64_t alignment = std::min<std::uint64_t>(size, eightbyte * most_eightbytes);
        if ((alignment & (alignment - 1)) == 0 && offset % alignment != 0) return to_memory(); // packed
        add_bytes(first, rest, offset, size);
    }

    void add_bytes(Class first, Class rest, std::uint64_t offset, std::uint64_t size) {
        const std::uint64_t begin = offset / eightbyte, end = (offset + size + eightbyte - 1) / eightbyte;
        for (std::uint64_t i = begin; i < end && i < classes_.count; ++i)
            classes_.of[i] = merged(classes_.of[i], i == begin ? first : rest);
    }

    void add_floating(const Type &type, std::uint64_t offset) {
        if (is_x87(type))
            add_scalar(Class::x87, Class::x87up, offset, 16);
        else
            add_scalar(Class::sse, Class::sseup, offset, type.size);
    }

    void add_complex(const Type &type, std::uint64_t offset, int depth) {
        const std::uint64_t half = type.size / 2;
        for (std::uint64_t part : {offset, offset + half}) {
            if (type.target != nullptr)
                add(*type.target, part, depth + 1);
            else
                add_scalar(Class::sse, Class::sseup, part, half);
        }
    }

    void add_array(const Type &type, std::uint64_t offset, int depth) {
        // The psABI has no vectors of 4 bytes, and no one of a single number: so the compilers pass them. Of a single
        // float each has a way of its own.
        if (is_lone_float(type) && type.size == 4) {
            classes_.unknown = true;
            return;
        }
        if (is_lone_float(type)) return to_memory();
        if (type.is_vector && type.size == 0) { // gcc writes __m512d without its bound
            classes_.unknown = may_be_vector_ = true;
            return;
        }
        if (type.is_vector && type.size == 4) return add_scalar(Class::integer, Class::integer, offset, type.size);
        if (type.is_vector) return add_scalar(Class::sse, Class::sseup, offset, type.size);
        if (type.target == nullptr) {
            classes_.unknown = true;
            return;
        }
        const std::uint64_t element = type.target->size;
        if (element == 0) return;
        for (std::uint64_t i = 0; i < type.count && offset + i * element < size_ && !in_memory_; ++i) {
            add(*type.target, offset + i * element, depth + 1);
            if (i != 0 && in_memory_) differ(); // gcc looks at the first alone, clang at all of them
        }
    }

    void add_member(const Member &member, std::uint64_t offset, int depth) {
        if (member.is_static) return;
        if (member.bit_size != 0) {
            const std::uint64_t first_bit = (offset + member.offset) * 8 + member.bit_offset;
            const std::uint64_t first = first_bit / 8, last = (first_bit + member.bit_size - 1) / 8;
            return add_bytes(Class::integer, Class::integer, first, last - first + 1);
        }
        if (member.type == nullptr)
            classes_.unknown = true;
        else
            add(*member.type, offset + member.offset, depth + 1);
    }

    /// The psABI's post merger cleanup (3.2.3, classification, step 5).
    void clean_up() {
        if (in_memory_) return;
        Class previous = Class::none;
        for (std::size_t i = 0; i < classes_.count; ++i) {
            Class &current = classes_.of[i];
            if (current == Class::memory) return to_memory();
            if (current == Class::x87up && previous != Class::x87) return to_memory();
            if (current == Class::sseup && previous != Class::sse && previous != Class::sseup) current = Class::sse;
            previous = current;
        }
        if (classes_.count > 2 && !is_one_vector()) to_memory();
    }

    bool is_one_vector() const {
        if (classes_.of[0] != Class::sse) return false;
        return std::all_of(classes_.of.begin() + 1, classes_.of.begin() + static_cast<std::ptrdiff_t>(classes_.count),
                           [](Class c) { return c == Class::sseup; });
    }

    std::uint64_t size_;
    Classes classes_;
    bool in_memory_ = false;
    bool may_be_vector_ = false; // one of no known size is in it
    int visited_ = 0;
};

constexpr int deepest = 16;

bool is_int128(const Type &type) { // whose alignment says more: see psabi.cc, two_words
    return type.kind == Type::Kind::integer && type.size == 2 * eightbyte;
}

/// `counts_declared`: where a type's alignment is declared, those of its members do not count.
std::uint64_t alignment_within(const Type &type, bool counts_declared, int depth) {
    const std::uint64_t declared = is_int128(type) ? 0 : type.alignment;
    if (declared != 0 && (counts_declared || !is_record(type))) return declared;
    if (depth > deepest) return 1;
    if (type.kind == Type::Kind::array && !type.is_vector)
        return type.target != nullptr ? alignment_within(*type.target, counts_declared, depth + 1) : 1;
    if (type.kind == Type::Kind::complex) return std::max<std::uint64_t>(type.size / 2, 1);
    if (!is_record(type)) return std::max<std::uint64_t>(type.size, 1);
    std::uint64_t most = std::max<std::uint64_t>(declared, 1);
    for (const Member &member : type.members) {
        if (member.is_static || member.type == nullptr) continue;
        const std::uint64_t own = alignment_within(*member.type, counts_declared, depth + 1);
        if (member.offset % own == 0 && type.size % own == 0) most = std::max(most, own);
    }
    return most;
}

} // namespace

bool is_lone_float(const Type &type) {
    return type.is_vector && type.target && type.target->kind == Type::Kind::floating && type.target->size == type.size;
}

bool is_record(const Type &type) { return type.kind == Type::Kind::structure || type.kind == Type::Kind::union_; }

Classes classify(const Type &type) {
    if (is_complex_x87(type)) {
        Classes classes;
        classes.count = 1;
        classes.of[0] = Class::complex_x87;
        return classes;
    }
    return Classifier(type).classes();
}

std::uint64_t alignment_of(const Type &type) { return alignment_within(type, /*counts_declared=*/true, 0); }

std::uint64_t largest_alignment_of(const Type &type) { return alignment_within(type, /*counts_declared=*/false, 0); }

} // namespace ktrace::arch::x86
