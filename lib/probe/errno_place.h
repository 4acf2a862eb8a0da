// Errno place: where a thread has C's errno, by the code of the C library's __errno_location, which is decoded and
// never called.
#pragma once

#include <span>

#include "base/memory.h"
#include "probe/resolve.h"
#include "program/lower/scope.h"

namespace ktrace::probe {

/// An int at the thread pointer and an offset. Where the offset is in a slot that the loader has not filled yet (or
/// `memory` is nullptr), it is read at each hit. Errors: refused: no module has the function, or its code is of no
/// known form.
Result<program::Binding> errno_place(std::span<const Loaded> modules, Memory *memory);

} // namespace ktrace::probe
