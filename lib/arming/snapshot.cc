#include "arming/snapshot.h"

#include <elf.h>

#include "engine/transparent/sigtrap/disposition.h"
#include "os/facts/hw_breakpoint.h"

namespace ktrace::arming {

namespace {

/// A stop in a function that nobody has asked to be probed may show: bash, which looks for signals a moment before it
/// reads, is more likely to miss one. So only a process that has a thread which blocks SIGTRAP, but not everything, is
/// watched for those that come to do so.
bool blocks_traps(Pid pid) {
    for (Tid tid : os::read_tasks(pid))
        if (auto status = os::read_status(tid.value); status && engine::blocks_traps_alone(status->blocked))
            return true;
    return false;
}

} // namespace

Snapshot take_snapshot(const trace::Trace &trace, const engine::Process &process) {
    static const trace::Arming nothing;
    const Pid pid = process.target.pid;
    auto installed = trace.armings.find(process.space.get());
    return {.trace = trace,
            .space = *process.space,
            .installed = installed == trace.armings.end() ? nothing : installed->second,
            .pid = pid,
            .modules = process.target.modules,
            .maps = process.target.maps,
            .memory = *process.space->memory,
            .has_loader = os::read_auxv(pid, AT_BASE).value_or(0) != 0,
            .has_debug_registers = os::debug_registers_trap(),
            .blocks_sigtrap = [pid] { return blocks_traps(pid); }};
}

} // namespace ktrace::arming
