// Snapshot: all that a plan depends on, as it was at one moment. Facts that need a system call are taken here, before
// planning; the target's memory is read through a port.
#pragma once

#include "base/memory.h"
#include "trace/trace.h"

namespace ktrace::arming {

struct Snapshot {
    const trace::Trace &trace;              // the registry and the configuration
    const engine::AddressSpaceState &space; // its sites and watchpoints
    const trace::Arming &installed;         // in that address space, so far
    Pid pid;
    std::vector<target::LoadedModule> modules;
    std::vector<os::Mapping> maps;
    Memory &memory;
    bool has_loader = false;         // a dynamic loader maps its libraries
    bool has_debug_registers = true; // that trap
};

/// The modules and mappings are those that the process was refreshed with last.
Snapshot take_snapshot(const trace::Trace &trace, const engine::Process &process);

} // namespace ktrace::arming
