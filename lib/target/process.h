// Process: what ktrace knows of one traced process that is not about probes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "target/address_space.h"
#include "target/modules.h"

namespace ktrace::target {

struct Process {
    Pid pid;
    std::string comm;
    std::shared_ptr<AddressSpace> space; // shared with a vfork child
    std::vector<LoadedModule> modules;
    std::vector<os::Mapping> maps;               // as last read; refresh before relying on holes
    std::optional<VirtAddr> syscall_instruction; // one that the process has, for remote_syscall
};

/// Reads maps and modules anew. Errors: gone, denied.
Status refresh(Process &process, ModuleCache &cache, std::vector<std::string> &unreadable);

/// Looks for the ISA's system call instruction in the executable mappings (the vdso first).
std::optional<VirtAddr> find_syscall_instruction(const Process &process);

} // namespace ktrace::target
