// Prototypes: what the C library's functions take and give, from a table of data (libc.prototypes), so that it is known
// without their debug information.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/dwarf/dwarf.h"
#include "value/type.h"

namespace ktrace::prototypes {

/// Bytes that a parameter points to.
struct Buffer {
    std::size_t parameter = 0; // its number
    std::string length;        // an EXPR; empty: it is a text
    bool is_written = false;   // shown as at the return; else as at the entry
};

struct Prototype {
    symbols::Function function; // name, result, parameters, variadic
    std::vector<Buffer> buffers;
    bool sets_errno = false; // where its result is -1, a null pointer or MAP_FAILED
};

/// A function of the C library, by any of its names: `open`, `open64`, `__open`, `memcpy@GLIBC_2.14`. nullptr:
/// the table does not have it. Lives as long as the process.
const Prototype *prototype_named(std::string_view name);
/// The types of all prototypes. Structures are only declared.
const value::TypeTable &types();
/// True where this is what a library of the C library's calls itself (DT_SONAME): glibc's parts and musl.
bool is_c_library(std::string_view soname);

/// All of the table, in its order.
std::vector<const Prototype *> all();

} // namespace ktrace::prototypes
