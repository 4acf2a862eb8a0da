// Symbol variable: a variable of which the symbol is known and no debug information, as in a stripped program.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "probe/resolve.h"
#include "program/lower/scope.h"

namespace ktrace::probe {

/// The variable that `name` means in the code of `own`: one of its own that no other module can replace, else the
/// program's, its own exported one, another module's. A signed number of the symbol's size, of 64 bits where it is
/// larger. Nothing: no module has it, or it is a thread's and not the program's.
std::optional<program::Binding> symbol_variable(std::string_view name, const Loaded &own,
                                                std::span<const Loaded> modules);

} // namespace ktrace::probe
