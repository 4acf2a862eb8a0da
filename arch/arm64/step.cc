// Single steps of a copy in its slot, and what a pc in a slot means.
#include "arm64/arm64.h"

#include "base/check.h"

namespace ktrace::arch {

namespace {

void restore_scratch(const Placement &placed, std::uint64_t old, Arm64Registers &regs) {
    if (placed.scratch >= 0) regs.x[placed.scratch] = old;
}

} // namespace

std::uint64_t Arm64::begin_step(const Placement &placed, VirtAddr slot, Registers &regs) {
    KT_CHECK(placed.size != 0);
    set_pc(regs, slot + placed.copy_at);
    if (placed.scratch < 0) return 0;
    std::uint64_t old = regs.x[placed.scratch];
    regs.x[placed.scratch] = placed.scratch_value;
    return old;
}

Stepped Arm64::finish_step(const Plan &plan, const Placement &placed, VirtAddr site, VirtAddr slot,
                           std::uint64_t old_scratch, Registers &regs, Memory &) {
    SlotPosition position = slot_position(placed, slot, pc(regs));
    if (position == SlotPosition::at_start || position == SlotPosition::inside) return Stepped::again;
    VirtAddr next = site + plan.length;
    if (plan.flow == Flow::call) regs.x[30] = next.value; // the copy linked to the slot
    if (position == SlotPosition::after) set_pc(regs, next);
    restore_scratch(placed, old_scratch, regs);
    return Stepped::done;
}

void Arm64::abort_step(const Placement &placed, VirtAddr site, VirtAddr slot, std::uint64_t old_scratch,
                       Registers &regs) {
    restore_scratch(placed, old_scratch, regs);
    switch (slot_position(placed, slot, pc(regs))) {
    case SlotPosition::at_start:
    case SlotPosition::inside: set_pc(regs, site); break;
    // The instruction is done; the task has stopped at the next one.
    case SlotPosition::after: set_pc(regs, site + a64_size); break;
    case SlotPosition::elsewhere: break;
    }
}

SlotPosition Arm64::slot_position(const Placement &placed, VirtAddr slot, VirtAddr pc) {
    std::int64_t offset = pc - slot;
    if (offset < 0 || offset >= placed.size) return SlotPosition::elsewhere;
    if (offset <= placed.copy_at) return SlotPosition::at_start;
    return offset < placed.copy_end ? SlotPosition::inside : SlotPosition::after;
}

} // namespace ktrace::arch
