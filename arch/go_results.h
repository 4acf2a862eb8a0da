// Where Go's functions leave their results (abi-internal.md), for any instruction set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "value/place.h"
#include "value/type.h"

namespace ktrace::arch {

/// The place of each result, in pieces of known sizes that make up its type; `integers` and `floats`: DWARF numbers of
/// the registers, in order. One that is on the stack is not known.
std::vector<value::Place> go_results(std::span<const value::Type *const> results,
                                     std::span<const std::uint16_t> integers, std::span<const std::uint16_t> floats);

} // namespace ktrace::arch
