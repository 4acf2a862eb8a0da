#include "tracees/signal_frames.h"

#include <algorithm>
#include <set>

#include "arch/way_back.h"
#include "os/proc/procfs.h"

namespace ktrace::tracees {

using arch::Host;
using arch::SlotPosition;
using engine::AddressSpaceState;

namespace {

constexpr std::uint64_t most_of_a_stack = 16 << 20; // bytes that are searched
constexpr std::size_t most_stacks = 16;             // of a task: signals may have stacks of their own

/// The program's own address for one in ktrace's pages; nothing: it is in the middle of a copy, or in ktrace's code.
std::optional<arch::SignalReturn> own_place(AddressSpaceState &space, const arch::SignalReturn &ours) {
    engine::Site *site = space.site_of_pc_in_slot(ours.pc);
    if (!site) return std::nullopt;
    switch (Host::slot_position(site->placed, site->slot, ours.pc)) {
    case SlotPosition::at_start: return arch::SignalReturn{site->at, ours.sp};
    case SlotPosition::after: return arch::SignalReturn{site->at + site->plan.length, ours.sp};
    case SlotPosition::inside: // a call is made once more
        if (site->placed.pushed != 0) return arch::SignalReturn{site->at, ours.sp + site->placed.pushed};
        break;
    case SlotPosition::elsewhere: break;
    }
    return std::nullopt;
}

/// The end of the memory that a stack pointer lies in.
VirtAddr end_of_stack(const std::vector<os::Mapping> &maps, VirtAddr sp) {
    for (const os::Mapping &mapping : maps)
        if (mapping.start <= sp && sp < mapping.end)
            return std::min(mapping.end, sp + static_cast<std::int64_t>(most_of_a_stack));
    return sp;
}

std::optional<VirtAddr> stack_pointer(const engine::Task &task, HeldTasks &held) {
    if (auto stopped = held.find(task.tid.value); stopped != held.end()) return stopped->second.sp();
    auto place = os::read_task_place(task.pid, task.tid);
    return place ? std::optional(place->sp) : std::nullopt;
}

/// False: a handler of the task returns to an address that has none of the program's own.
bool lead_out(AddressSpaceState &space, VirtAddr from, const std::vector<os::Mapping> &maps) {
    bool all = true;
    std::vector<VirtAddr> stacks{from};
    for (std::size_t i = 0; i < stacks.size() && i < most_stacks; i++) {
        const VirtAddr sp = stacks[i], end = end_of_stack(maps, sp);
        for (const arch::SignalFrame &frame : arch::signal_frames(sp, end, *space.memory)) {
            if (frame.to.sp < sp || end <= frame.to.sp) stacks.push_back(frame.to.sp);
            if (!space.slots.contains(frame.to.pc) && !space.recovery.contains(frame.to.pc)) continue;
            const auto place = own_place(space, frame.to);
            all = place && space.memory->write_value(frame.pc_at, place->pc.value) &&
                  space.memory->write_value(frame.sp_at, place->sp.value) && all;
        }
    }
    return all;
}

} // namespace

bool lead_handlers_out(trace::Trace &trace, const SpacePointer &space, HeldTasks &held) {
    bool all = true;
    for (Tid tid : tasks_in(trace, space)) {
        const engine::Task &task = trace.engine.tasks.at(tid.value);
        const auto sp = stack_pointer(task, held);
        const auto maps = sp ? os::read_maps(task.pid) : std::nullopt;
        if (maps) all = lead_out(*space, *sp, *maps) && all;
    }
    return all;
}

} // namespace ktrace::tracees
