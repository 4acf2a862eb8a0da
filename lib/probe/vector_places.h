// Vectors wider than 16 bytes: whether a function passes them in registers is a matter of how it was compiled.
#pragma once

#include <span>

#include "probe/resolve.h"
#include "program/lower/scope.h"

namespace ktrace::probe {

/// True where one of these places of a calling convention is a wide vector's register, and the function's code does not
/// show that it was compiled for such registers. Other code passes it, and the values beside it, in another way.
bool is_vector_doubtful(const Location &location, std::span<const value::Place> places);

} // namespace ktrace::probe
