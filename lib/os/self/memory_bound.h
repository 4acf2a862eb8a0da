// A bound on the memory of this process. How much libelf and libdw take for a file depends on the file's content. They
// report a refused allocation as an error.
//
// Invariants: programs that are started have the limits that ktrace was started with.
#pragma once

#include <cstdint>

namespace ktrace::os {

/// Debug information that expands to as much as is allowed has room (symbols/dwarf_guard.h), and as much again.
inline constexpr std::uint64_t most_memory = std::uint64_t{4} << 30;

/// From now on this process has that much at most: private memory that can be written to (RLIMIT_DATA, setrlimit(2);
/// mapped files do not count). Nothing happens where it has more already (AddressSanitizer), or less is allowed.
void bound_memory();

/// As it was before: in a child that is to become another program. Only makes a system call.
void unbound_memory();

} // namespace ktrace::os
