// Type: what a value in the target is, as plain data. Made from DWARF by symbols/, read by arch/ (calling conventions),
// program/ (what to fetch) and output/ (how to print).
//
// Invariants: types live as long as the TypeTable that made them, are never changed once published, and are referred to
// by pointer or by their index in that table. Cycles (struct list { struct list *next; }) go through `target`.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace ktrace::value {

struct Type;

/// A member of a struct, union or class. Offsets are from the start of the enclosing object.
struct Member {
    std::string name; // empty: anonymous struct/union or base class
    const Type *type = nullptr;
    std::uint64_t offset = 0;     // bytes
    std::uint32_t bit_offset = 0; // bit fields: first bit within the object at `offset`, little endian count
    std::uint32_t bit_size = 0;   // bit fields: width; 0: no bit field
    bool is_base = false;         // a C++ base class
    bool is_static = false;       // has no place in the object
};

struct Enumerator {
    std::string name;
    std::int64_t value = 0;
};

struct Type {
    enum class Kind : std::uint8_t {
        void_,
        bool_,
        char_,    // a character: prints as 'c' with its number
        integer,  // see is_signed
        floating, // size 4, 8, 10/16 (long double, x87 where the ISA has it)
        enumeration,
        pointer,   // target may be nullptr or void_
        reference, // C++ & and &&: prints what it refers to
        array,     // of target; count elements, 0 where unknown
        structure, // struct, class
        union_,
        function,
        complex, // _Complex: two of target
        unknown, // a type that the debug information does not describe (size may still be known)
    };

    Kind kind = Kind::unknown;
    bool is_signed = false;
    bool by_reference = false;    // C++: DW_CC_pass_by_reference, or known to be non-trivial for calls
    bool incomplete = false;      // a declaration only
    bool is_vector = false;       // array: a SIMD vector (DW_AT_GNU_vector: __m128), which is passed as one value
    std::uint32_t index = 0;      // in its TypeTable
    std::uint64_t size = 0;       // bytes
    std::uint64_t alignment = 0;  // 0: natural
    std::uint64_t count = 0;      // arrays
    std::string name;             // as C writes it: `unsigned int`, `struct point`, `Foo::Bar<int>`, `char *`
    const Type *target = nullptr; // pointee, element, referred type, underlying type of an enumeration, return type
    std::vector<Member> members;
    std::vector<Enumerator> enumerators;
};

/// Owns types; hands out stable pointers and indexes.
class TypeTable {
  public:
    /// A new, empty type; its maker fills it in before it is used elsewhere.
    Type &make() {
        types_.emplace_back();
        types_.back().index = static_cast<std::uint32_t>(types_.size() - 1);
        return types_.back();
    }
    const Type &at(std::uint32_t index) const { return types_.at(index); }
    std::size_t size() const { return types_.size(); }

  private:
    std::deque<Type> types_;
};

} // namespace ktrace::value
