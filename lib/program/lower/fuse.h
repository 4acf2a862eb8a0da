// Fuse: shorter code for the same: what filters and arguments mostly are becomes one instruction.
#pragma once

#include "program/lower/code.h"

namespace ktrace::program {

/// Gives code that does the same in fewer instructions.
Instrs fuse(const Instrs &code);

} // namespace ktrace::program
