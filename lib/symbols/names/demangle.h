// Demangling of C++ (Itanium ABI) and Rust (legacy and v0) names. The only user of libiberty.
//
// Invariants: names come from files that may be crafted: time, stack and output are bounded, and a name that would go
// beyond is left as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ktrace::symbols {

enum class Spelling : std::uint8_t {
    name,      // Foo::bar
    signature, // Foo::bar(int*) const
};

/// True where a name looks as compilers mangle them (_Z, _R); demangle may still find that it is not one.
bool is_mangled(std::string_view name);

/// The name as it is written in the source; nothing where it is no mangled name. A clone's suffix (`.constprop.0`) must
/// have been taken off (split_clone).
std::optional<std::string> demangle(std::string_view name, Spelling spelling);

/// A symbol's name and what GCC and Clang append to the names of copies and parts that they make of a function.
struct CloneName {
    std::string_view base;     // do_work
    std::string_view suffix;   // .constprop.0, .isra.0.part.1, or empty
    bool cold = false;         // it is the part of the function that is rarely executed, which is no function
    bool part = false;         // it is a piece of the function (.part, .actor), which that calls
    bool of_coroutine = false; // one of the pieces that coroutines of C++ are made of (.actor, .resume)
};
CloneName split_clone(std::string_view name);

} // namespace ktrace::symbols
