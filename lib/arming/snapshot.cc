#include "arming/snapshot.h"

#include <elf.h>

#include "os/facts/hw_breakpoint.h"

namespace ktrace::arming {

Snapshot take_snapshot(const trace::Trace &trace, const engine::Process &process) {
    static const trace::Arming nothing;
    const Pid pid = process.target.pid;
    auto installed = trace.installed.armings.find(process.space.get());
    return {.trace = trace,
            .space = *process.space,
            .installed = installed == trace.installed.armings.end() ? nothing : installed->second,
            .pid = pid,
            .modules = process.target.modules,
            .maps = process.target.maps,
            .memory = *process.space->memory,
            .has_loader = os::read_auxv(pid, AT_BASE).value_or(0) != 0,
            .has_debug_registers = os::debug_registers_trap()};
}

} // namespace ktrace::arming
