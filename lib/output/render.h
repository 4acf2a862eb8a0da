// Render: the bytes of a value, and its type, become text for people or JSON; so do the values of a record.
//
// Invariants: no byte outside of those given is read, for any type; a part that is cut off is shown as `...` (JSON:
// left out or null); the depth is bounded.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output/symbolizer.h"
#include "program/tables/record_reader.h"
#include "value/type.h"

namespace ktrace::output {

/// How much of a value is shown in text; JSON has all of it.
struct ValueLimits {
    std::size_t elements; // of an array; then `...`
    int levels;           // of structures and arrays in each other
    std::size_t text;     // bytes of a text
    std::size_t columns;  // of all of it
    bool follows;         // a pointer to a structure shows the structure

    static const ValueLimits brief, full, all; // all: JSON's
};

/// The value as people read it: 42, 'a', "text", RED, A|B, 0x7f00, {.x=1, .y=2}, [1, 2, 3], 1.5, 1 + 2i.
void append_text(std::string &out, const value::Type &type, std::span<const std::byte> bytes,
                 const ValueLimits &limits = ValueLimits::full);

/// The same as a JSON value: integers are integers, pointers strings, enumerators and characters strings, structures
/// objects, arrays of characters strings, other arrays lists.
void append_json(std::string &out, const value::Type &type, std::span<const std::byte> bytes);

/// The first bytes of a text, at most so many, without a part of a character.
std::string_view shortened(std::string_view text, std::size_t bytes);

/// The context that the values of a record need beyond their bytes; both pointers may be nullptr.
struct Context {
    const value::TypeTable *types = nullptr;
    Symbolizer *symbolizer = nullptr;
    std::int32_t pid = 0;                           // whose addresses those of stacks are
    std::size_t lines = 0;                          // how many frames of a stack are shown; 0: all
    const ValueLimits *limits = &ValueLimits::full; // text
};

/// One value of a record. A stack becomes `f+0x1 < g+0x2 < main+0x3` in text, a list of frames in JSON; registers
/// become `ax=0x1 bx=0x2 …`, or an object of strings.
void append_text(std::string &out, const program::Node &node, const Context &context);
void append_json(std::string &out, const program::Node &node, const Context &context);

/// The frames of a stack node, innermost first: a function that was inlined into a frame stands before it, and counts
/// as one.
std::vector<NamedFrame> name_frames(const program::Node &stack, const Context &context);

/// `symbol+0x4 [module] file:line`, as far as it is known; else the address.
void append_frame_text(std::string &out, const NamedFrame &frame);

/// A line a frame, numbered from the innermost on, as behind an event.
void append_frame_lines(std::string &out, const program::Node &stack, const Context &context);

} // namespace ktrace::output
