// Remains: the traps and mappings that a killed ktrace, also of another version, has left in a process, found by its
// recovery page (arch/recovery.h).
//
// Invariant: nothing in the page is trusted beyond the process that it is in: counts are bounded, and a byte is put
// back only where there is a trap.
#pragma once

#include <optional>
#include <vector>

#include "arch/host.h"
#include "base/addr.h"
#include "base/ids.h"
#include "base/result.h"
#include "os/proc/procfs.h"
#include "recovery/ledger.h"

namespace ktrace::recovery {

/// Of the memory that jumps count in (memfd_create(2)).
inline constexpr const char *counters_name = "ktrace counters";

struct Left {
    VirtAddr page;
    ktrace_recovery_header header{};
    std::vector<ktrace_recovery_entry> entries; // those in use
    std::vector<ktrace_recovery_detour> jumps;  // those in use
    std::size_t mappings = 0;                   // of the process that something of it is in, as the kernel shows them
};

/// True where all of a range lies in mappings as ktrace makes them, so that unmapping it can harm nothing else.
bool may_be_ours(const std::vector<os::Mapping> &maps, std::uint64_t start, std::uint64_t size);

/// Whether the mapping that mmap(2) returned is there: a seccomp filter or its supervisor may have made the answer up.
/// Errors: refused, gone.
Status check_mapped(Pid pid, VirtAddr at, std::uint64_t size);

/// The pages in a process, by their magic. Errors: gone, denied.
Result<std::vector<Left>> find_left(Pid pid);

/// The page at a known address; nothing: there is none.
std::optional<Left> read_left(Pid pid, VirtAddr page);

/// Puts the program's own bytes back over every trap that is still there, and returns their number. The process need
/// not be traced.
std::size_t put_back(Pid pid, const Left &left);

/// Puts the original bytes back where the trap is still there. False: it is not.
bool put_back(const PagelessTrap &trap);

} // namespace ktrace::recovery
