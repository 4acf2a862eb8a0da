#include "engine/eval/evaluation.h"

#include "program/eval/eval.h"

#include <cstring>

#include "base/clock.h"
#include "engine/eval/inject.h"
#include "engine/eval/stopped_thread.h"

namespace ktrace::engine {

using arch::Host;
using program::HitView;
using program::Moment;
using program::Outcome;

Outcome run_program(Engine &engine, Process &process, Task &task, const Attachment &attachment, Moment moment,
                    VirtAddr pc, os::Stopped &stopped, std::span<std::byte> capture, std::size_t &captured,
                    std::span<const std::byte> earlier, const program::Duration *duration) {
    program::Needs needs = attachment.program->needs(moment);
    Host::Registers &registers = engine.registers;
    if (needs.registers || needs.floating) registers = stopped.registers();
    Host::set_pc(registers, pc);
    StoppedThread thread(engine, process, stopped, registers);
    HitView view{registers, process.space->memory.get(),
                 &thread,   process.target.pid,
                 task.tid,  0,
                 0,         duration ? duration->ns : 0,
                 earlier,   nullptr};
    program::Changes &changes = engine.changes;
    changes.clear();
    view.changes = &changes;
    view.duration = duration;
    if (needs.time) {
        view.monotonic_ns = monotonic_ns();
        view.time_ns = realtime_ns();
    }
    auto record = engine.records.reserve();
    Outcome outcome =
        program::eval(attachment.program->image(), moment, view, *attachment.state, capture, captured, record);
    if (outcome == Outcome::event) {
        program::RecordHeader header;
        std::memcpy(&header, record.data(), sizeof header);
        header.location = attachment.location;
        header.sequence = ++task.sequence;
        std::memcpy(record.data(), &header, sizeof header);
        engine.records.commit(header.size);
    }
    const bool is_event = outcome == Outcome::event || outcome == Outcome::aggregated;
    if (is_event && !attachment.state->is_ours && ++engine.events >= engine.max_events) engine.closing = true;
    return outcome;
}

bool inject(Engine &engine, Process &process, os::Stopped &stopped, Diversion &diversion) {
    const program::Changes &changes = engine.changes;
    if (!changes.any()) return false;
    diversion.moved = make_changes(process, changes, stopped) || diversion.moved;
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

} // namespace ktrace::engine
