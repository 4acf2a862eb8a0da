// Render: the bytes of a value, and its type, become text for people or JSON.
//
// Invariants: no byte outside of those given is read, whatever the type says; what is cut off is shown as `...` (JSON:
// left out or null); the depth is bounded.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "value/type.h"

namespace ktrace::output {

/// The value as people read it: 42, 'a', "text", RED, A|B, 0x7f00, {.x=1, .y=2}, [1, 2, 3], 1.5, 1 + 2i.
void append_text(std::string &out, const value::Type &type, std::span<const std::byte> bytes);

/// The same as a JSON value: integers are integers, pointers strings, enumerators and characters strings, structures
/// objects, arrays of characters strings, other arrays lists.
void append_json(std::string &out, const value::Type &type, std::span<const std::byte> bytes);

} // namespace ktrace::output
