#include "engine/calls/jump_back.h"

namespace ktrace::engine {

using arch::Host;

namespace {

/// Where the task goes from a site: its instruction is emulated on a copy of the registers.
VirtAddr next_of(Process &process, const Site &site, os::Stopped &stopped) {
    Host::Registers after = stopped.registers();
    Host::emulate(site.plan, site.at, after, *process.space->memory);
    return Host::pc(after);
}

void note_jump_back(Engine & /*engine*/, Process &process, Task &task, Site &site, os::Stopped &stopped) {
    const VirtAddr entry = *site.plan.target;
    if (next_of(process, site, stopped) == entry) task.calls.jump_back = {entry, stopped.sp()};
}

} // namespace

const InternalPurpose jumps_back{.at_hit = note_jump_back};
const InternalPurpose is_jumped_back_to{};

bool take_jump_back(Task &task, const Site &site, os::Stopped &stopped) {
    const JumpBack &jump = task.calls.jump_back;
    if (jump.to != site.at || stopped.sp() != jump.sp) return false;
    task.calls.jump_back = {};
    return true;
}

} // namespace ktrace::engine
