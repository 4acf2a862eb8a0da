// Left: what a ktrace that was killed has left in a process, by its page (arch/rescue.h), also of another version.
//
// Invariant: nothing in the page is trusted beyond the process that it is in: counts are bounded, and a byte is put
// back only where a trap is.
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

struct Left {
    VirtAddr page;
    ktrace_recovery_header header{};
    std::vector<ktrace_recovery_entry> entries; // those in use
    std::size_t mappings = 0;                   // of the process that something of it is in, as the kernel shows them
};

/// True where all of a range lies in mappings as ktrace makes them, and nothing else can be harmed by unmapping it.
bool may_be_ours(const std::vector<os::Mapping> &maps, std::uint64_t start, std::uint64_t size);

/// Is what mmap(2) was answered there? A seccomp filter or its supervisor may have answered. Errors: refused, gone.
Status check_mapped(Pid pid, VirtAddr at, std::uint64_t size);

/// The pages in a process, by their magic. Errors: gone, denied.
Result<std::vector<Left>> find_left(Pid pid);

/// The page at a known address; nothing: there is none.
std::optional<Left> read_left(Pid pid, VirtAddr page);

/// Puts the program's own bytes back over every trap that is still there; how many there were. The process need not be
/// traced.
std::size_t put_back(Pid pid, const Left &left);

/// Puts back what a trap has replaced, where it is still there. False: it is not.
bool put_back(const Untold &trap);

} // namespace ktrace::recovery
