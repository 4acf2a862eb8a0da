// Single steps of a copy in its slot, and what a pc in a slot means.
#include "arm64/arm64.h"

namespace ktrace::arch {

std::uint64_t Arm64::begin_step(const Placement &placed, VirtAddr slot, Registers &regs) {
    regs.pc = (slot + placed.copy_at).value;
    if (placed.scratch < 0) return 0;
    std::uint64_t old = regs.x[placed.scratch];
    regs.x[placed.scratch] = placed.scratch_value;
    return old;
}

Stepped Arm64::finish_step(const Plan &plan, const Placement &placed, VirtAddr site, VirtAddr slot,
                           std::uint64_t old_scratch, Registers &regs, Memory &) {
    VirtAddr copy_end = slot + placed.copy_end, next = site + plan.length;
    if (regs.pc == (slot + placed.copy_at).value) return Stepped::again;
    if (placed.scratch >= 0) regs.x[placed.scratch] = old_scratch;
    if (plan.flow == Flow::call) regs.x[30] = next.value; // it linked to the slot
    if (regs.pc == copy_end.value) regs.pc = next.value;
    return Stepped::done;
}

void Arm64::abort_step(const Placement &placed, VirtAddr site, VirtAddr, std::uint64_t old_scratch, Registers &regs) {
    if (placed.scratch >= 0) regs.x[placed.scratch] = old_scratch;
    regs.pc = site.value;
}

SlotPosition Arm64::slot_position(const Placement &placed, VirtAddr slot, VirtAddr pc) {
    std::int64_t offset = pc - slot;
    if (offset < 0 || offset >= placed.size) return SlotPosition::elsewhere;
    if (offset <= placed.copy_at) return SlotPosition::at_start;
    return offset < placed.copy_end ? SlotPosition::inside : SlotPosition::after;
}

} // namespace ktrace::arch
