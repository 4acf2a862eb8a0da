// Loader: the state of a process's dynamic loader, read from its r_debug (System V ABI, <link.h>). Nothing is stopped
// or changed: the state may be another one a moment later, unless the loader's breakpoint is watched.
#pragma once

#include <optional>

#include "target/process.h"

namespace ktrace::target {

/// True where the loader has mapped all that the process has asked it for (RT_CONSISTENT), and where there is no such
/// loader. False at a program's start, and in the middle of a dlopen.
bool modules_complete(const Process &process);

/// In the middle of a dlclose (RT_DELETE): code that is still mapped may be gone, or be other memory, at any moment.
bool is_unloading(const Process &process);

/// The function that the loader calls whenever it has changed its list of modules. Nothing: no loader, or one without.
std::optional<VirtAddr> loader_breakpoint(const Process &process);

} // namespace ktrace::target
