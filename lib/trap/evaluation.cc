#include "trap/evaluation.h"

#include <cstring>

#include "base/clock.h"
#include "trap/inject.h"
#include "trap/stopped_thread.h"

namespace ktrace::trap {

using arch::Host;
using program::HitView;
using program::Moment;
using program::Outcome;

Outcome run_program(World &world, Traced &traced, Task &task, const Armed &armed, Moment moment, VirtAddr pc,
                    os::Stopped &stopped, std::span<std::byte> capture, std::size_t &captured,
                    std::span<const std::byte> earlier, std::uint64_t duration_ns) {
    program::Needs needs = armed.program->needs(moment);
    Host::Registers &registers = world.registers;
    if (needs.registers || needs.floating) registers = stopped.registers();
    Host::set_pc(registers, pc);
    StoppedThread thread(world, traced, stopped, registers);
    HitView view{registers, *traced.ground->space, thread, traced.process.pid, task.tid, 0, 0, duration_ns, earlier,
                 nullptr};
    program::Changes &changes = world.changes;
    changes.clear();
    view.changes = &changes;
    if (needs.time) {
        view.monotonic_ns = monotonic_ns();
        view.time_ns = realtime_ns();
    }
    auto record = world.records.reserve();
    Outcome outcome = program::eval(*armed.program, moment, view, *armed.state, capture, captured, record);
    if (outcome == Outcome::event) {
        program::RecordHeader header;
        std::memcpy(&header, record.data(), sizeof header);
        header.location = armed.location;
        header.sequence = ++task.sequence;
        std::memcpy(record.data(), &header, sizeof header);
        world.records.commit(header.size);
    }
    const bool is_event = outcome == Outcome::event || outcome == Outcome::aggregated;
    if (is_event && ++world.events >= world.max_events) world.closing = true;
    return outcome;
}

bool inject(World &world, Traced &traced, os::Stopped &stopped, Diversion &diversion) {
    const program::Changes &changes = world.changes;
    if (!changes.any()) return false;
    diversion.moved = make_changes(traced, changes, stopped) || diversion.moved;
    diversion.skips = diversion.skips || changes.skips;
    return true;
}

void count(program::Counters &counters, Outcome outcome) {
    switch (outcome) {
    case Outcome::event:
    case Outcome::aggregated: counters.events++; break;
    case Outcome::filtered: counters.filtered++; break;
    case Outcome::unselected: counters.unselected++; break;
    case Outcome::accepted: break;
    }
}

} // namespace ktrace::trap
