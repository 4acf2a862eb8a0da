// Checks before elfutils opens debug information: it expands all compressed sections of a file at once, and
// finds and opens .dwo files by names that the file has.
#pragma once

#include <cstdint>
#include <string>

#include <elfutils/libdw.h>

#include "base/result.h"

namespace ktrace::symbols {

/// The sizes that the compressed sections of a file may expand to: each to so many times its size, or to so much
/// anyhow, and all together to most_expanded. Debug information shrinks to a tenth of its size at best.
constexpr std::uint64_t most_times = 100, always_allowed = 16U << 20, most_expanded = std::uint64_t{2} << 30;

/// Errors: refused (debug sections that expand to more than that; `shown` is what the file is called).
Status check_expansion(Elf *elf, const std::string &shown);

/// Whether elfutils may look for the file that several share debug information in (.gnu_debugaltlink, as dwz makes it);
/// true, too, where there is none. `directory` is that of the file itself. Errors: refused, as below.
Status check_shared_file(::Dwarf *dwarf, const std::string &directory);

/// Whether elfutils may look for the .dwo file of a skeleton unit; `directory` is that of the file that the unit is in.
/// Errors: not_found (none is there, with its name), refused (a device or a FIFO, whose opening may wait for ever;
/// sections that expand to too much).
Status check_split_file(Dwarf_Die skeleton, const std::string &directory);

} // namespace ktrace::symbols
