// The known part of Rust's calling convention: it is its compiler's own, described by no document, and changes.
//
// Invariants: a place is given only where C's convention and Rust's agree, or the debug information of unoptimized code
// shows which of Rust's ways was taken; nothing is given of what comes behind a parameter that is not known.
#pragma once

#include <optional>
#include <vector>

#include "symbols/dwarf/dwarf.h"
#include "symbols/dwarf/places/places.h"

namespace ktrace::symbols {

/// Where the parameters of a function of Rust's, whose DIEs these are, lie at its first instruction. nullopt: not
/// known.
std::vector<std::optional<value::Place>> rust_places(const Function &function, const std::vector<Dwarf_Die> &parameters,
                                                     Dwarf_Die die);

/// True where Rust returns a value of this type (nullptr: nothing) as C does; of two registers optimizers leave out the
/// one that no caller looks at, unless the function is kept `whole`.
bool rust_returns_as_c(const value::Type *result, bool whole);

} // namespace ktrace::symbols
