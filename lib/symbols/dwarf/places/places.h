// Places of variables: DWARF location descriptions, at one address, become value::Place.
//
// Invariants: a Place has a bounded number of ops, its branches go forward and land inside; an expression that cannot
// be translated into a Place, or is broken in the file, becomes one that is unavailable, with the reason.
#pragma once

#include <cstdint>
#include <optional>

#include "symbols/dwarf/die/die.h"
#include "symbols/dwarf/places/frames.h"
#include "value/place.h"

namespace ktrace::symbols {

/// Where a location is looked at.
struct Viewpoint {
    std::uint64_t vaddr = 0;
    std::uint64_t bias = 0;            // address = vaddr + bias
    std::optional<Dwarf_Die> function; // the out-of-line function around vaddr: has the frame base
    bool at_entry = false;             // vaddr is that function's first instruction
};

/// Where a variable or parameter lies, seen from there: by DW_AT_location or DW_AT_const_value. `size`: bytes of its
/// type.
value::Place place_of(Dwarf_Die variable, std::uint64_t size, const Viewpoint &view, Frames &frames);

/// Where a parameter lies at the entry of a function: by a location-list entry that covers it, or a constant; nullopt:
/// the debug information does not say. An expression that is not in a list holds after the prologue only, but for
/// optimized code (`always_holds`).
std::optional<value::Place> entry_place_of(Dwarf_Die parameter, std::uint64_t size, const Viewpoint &entry,
                                           Frames &frames, bool always_holds);

/// True where two places are the same address, counted from the same register.
bool same_address(const value::Place &a, const value::Place &b);

/// True where DW_AT_location is one expression, valid in the whole scope, that gives an address (as all are at -O0).
bool lives_in_memory(Dwarf_Die variable);

/// True where a parameter's location is what a pointer points to: a word that is read for the address, or a register
/// that has it.
bool is_address_passed(Dwarf_Die parameter);

/// The way of LLVM's unoptimized code with a parameter, as far as DW_AT_location says: it stores the value in the
/// function's frame, or the value's address, or leaves that in its register.
enum class Stored : std::uint8_t { unknown, value, address, nothing };
Stored stored_in_frame(Dwarf_Die parameter, Dwarf_Die function);
inline bool is_stored(Dwarf_Die parameter, Dwarf_Die function) {
    Stored stored = stored_in_frame(parameter, function);
    return stored == Stored::value || stored == Stored::address;
}

/// It lies below the CFA (DW_OP_fbreg of a function whose frame base that is): nothing is there at the entry.
bool is_below_cfa(Dwarf_Die parameter, Dwarf_Die function);

/// One expression as a Place; `attr`: the attribute that it comes from (nullptr: call frame information).
value::Place translate(Dwarf_Attribute *attr, const Dwarf_Op *ops, std::size_t count, const Viewpoint &view,
                       Frames &frames);

} // namespace ktrace::symbols
