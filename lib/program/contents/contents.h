// Contents: what an object of a standard library's type holds, as code that reads and shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/contents/dynamic_types.h"
#include "program/run/image.h"
#include "value/type.h"

namespace ktrace::program::contents {

/// The services of the compiler of expressions that printers need.
class Surroundings {
  public:
    virtual ~Surroundings() = default;
    /// The type with its members, where it was only declared so far.
    virtual const value::Type &complete(const value::Type &type) = 0;
    /// Appends code that takes an address off the stack and shows the object of `type` there, as one node.
    virtual void show(const value::Type &type) = 0;
    /// The types that an interface of this type may hold; none where it is in another one.
    virtual DynamicTypes dynamic_types(const value::Type &) { return {}; }
    /// As show, of what an interface holds.
    virtual void show_dynamic(const value::Type &type) { show(type); }
};

/// True where a printer knows the type. A type that is only declared may be known, too.
bool is_known(const value::Type &type);

/// Appends code that takes the address of an object off the stack and writes one node: what it holds. False: the type
/// is not made as expected, and nothing was appended.
bool show(const value::Type &type, std::vector<Instr> &out, Surroundings &around);

/// A text of a library: std::string, std::string_view, Rust's String and &str, Go's string.
bool is_text(const value::Type &type);

/// Appends code that replaces the address of such an object by its text, at most `most` bytes of it.
void load_text(const value::Type &type, std::uint64_t most, std::vector<Instr> &out);

/// A part of an object that a printer knows, or a virtual base.
struct Part {
    std::uint64_t offset = 0; // virtual base: of the part that has it
    const value::Type *type = nullptr;
    std::optional<std::int64_t> virtual_at = std::nullopt; // virtual base: value::VirtualBase
};

/// The parts of an object of any other type, in the order in which they lie, so many as are shown.
std::vector<Part> parts_of(const value::Type &type, Surroundings &around);

/// The bytes of an object; those of a class that is only declared, where its library has them the same everywhere.
std::uint64_t size_of(const value::Type &type);

} // namespace ktrace::program::contents
