// Type: what a value in the target is, as plain data. Made from DWARF by symbols/, read by arch/ (calling conventions),
// program/ (what to fetch) and output/ (how to print).
//
// Invariants: types live as long as the TypeTable that made them, are never changed once published, and are referred to
// by pointer or by their index in that table. Cycles (struct list { struct list *next; }) go through `target`.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
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
    std::int32_t variant = -1;    // of which of the type's variants it is a part; -1: it is always there
};

/// One of several forms that an object can have (Rust: the cases of an enum).
struct Variant {
    std::optional<std::uint64_t> value; // of the discriminant; nothing: all that no other one has
};

/// A virtual base class: its offset in an object is a number that stands `at` bytes behind what the object's first word
/// points to.
struct VirtualBase {
    const Type *type = nullptr;
    std::int64_t at = 0;
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
    bool by_reference = false;      // C++: DW_CC_pass_by_reference, or known to be non-trivial for calls
    bool incomplete = false;        // a declaration only
    bool is_decimal = false;        // floating: IEEE 754's decimal ones
    bool is_vector = false;         // array: a SIMD vector (DW_AT_GNU_vector: __m128), which is passed as one value
    std::uint32_t index = 0;        // in its TypeTable
    std::uint64_t size = 0;         // bytes
    std::uint64_t alignment = 0;    // 0: natural
    std::uint64_t count = 0;        // arrays
    std::int64_t lower = 0;         // arrays: the index of their first element
    std::uint64_t stride = 0;       // arrays: bytes from one element to the next; 0: the element's size
    const Type *by_index = nullptr; // arrays whose first index varies fastest: the same, in the order of the indices
    std::string name;               // as C writes it: `unsigned int`, `struct point`, `Foo::Bar<int>`, `char *`
    const Type *target = nullptr;   // pointee, element, referred type, underlying type of an enumeration, return type
    std::vector<Member> members;
    std::vector<VirtualBase> virtual_bases;
    std::vector<Enumerator> enumerators;
    std::vector<Variant> variants;
    const Type *discriminant = nullptr; // nullptr with variants: there is only one
    std::uint64_t discriminant_offset = 0;
    const Type *member_of = nullptr; // a pointer to a member (an integer, or {ptr, adj} of a function): of that class
    const Type *alias_of = nullptr;  // a typedef or a qualified type: the type that it names
    std::vector<const Type *> parameters; // of a library's template: the types that it was made with
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
