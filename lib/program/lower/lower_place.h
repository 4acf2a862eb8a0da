// Lowering of value::Place: from where a value lies, as data, to the instructions that fetch it.
#pragma once

#include <cstdint>
#include <optional>

#include "program/lower/code.h"
#include "value/place.h"

namespace ktrace::program {

/// True where the whole object of `size` bytes is at one address in memory.
bool is_in_memory(const value::Place &place, std::uint64_t size);

/// Instructions that leave the address of such a place, or the value of a piece of kind `value`. The value of
/// a register at the entry is unavailable to them; `index` of that instruction is the register's number and 1.
void lower_ops(const value::Piece &piece, Instrs &out);

/// Instructions that leave a register.
Instrs lower_register(std::uint16_t dwarf_number);

/// Where a value of this type is written to, if it is a scalar in one register, or in memory at a register's value and
/// a displacement; nothing: it lies elsewhere.
std::optional<Destination> destination_of(const value::Place &place, const value::Type &type);

/// Instructions that leave an integer of `size` bytes (at most 8) that lies in one general register or is a computed
/// value; false where the place is none of these, and nothing was written.
bool lower_scalar(const value::Place &place, unsigned size, bool is_signed, Instrs &out);

/// Instructions that leave the object of `size` bytes (at most max_value are fetched), put together of all its pieces.
void lower_object(const value::Place &place, std::uint64_t size, Code &code, Instrs &out);

} // namespace ktrace::program
