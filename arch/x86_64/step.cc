// Step: a slot's copy under a single step: into the slot, and from wherever the step ended back into the program, with
// everything put right that the copy did differently there.
//
// Invariant: nothing here knows more of a step than the registers; a step that was cut short by a fault or signal is
// undone by abort_step, which is exact since no instruction changes its scratch register.
#include "x86_64/x86_64.h"

#include "base/check.h"
#include "x86_64/general.h"

namespace ktrace::arch {

namespace {

/// A pushed image of the flags shows the trap flag that stepped it. The kernel hides it from `regs` if it is not the
/// program's own.
void clear_pushed_trap_flag(const X86_64Registers &regs, Memory &memory) {
    if ((regs.flags & x86::flag_trap) != 0) return;
    const VirtAddr holder = VirtAddr{regs.sp} + 1; // bit 8 of the image, which is 2 or 8 bytes wide
    constexpr std::byte trap_in_byte{x86::flag_trap >> 8};
    if (auto byte = memory.read_value<std::byte>(holder)) memory.write_value(holder, *byte & ~trap_in_byte);
}

void restore_scratch(const Placement &placed, std::uint64_t old, X86_64Registers &regs) {
    if (placed.scratch >= 0) x86::general(regs, placed.scratch) = old;
}

} // namespace

/// The kernel hides the trap flag that it has set itself.
bool X86_64::steps_itself(const Registers &regs) { return (regs.flags & x86::flag_trap) != 0; }

void X86_64::step_itself(Registers &regs, bool does) {
    constexpr std::uint64_t flag = x86::flag_trap;
    regs.flags = does ? regs.flags | flag : regs.flags & ~flag;
}

std::uint64_t X86_64::begin_step(const Placement &placed, VirtAddr slot, Registers &regs) {
    KT_CHECK(placed.size != 0);
    set_pc(regs, slot + placed.copy_at);
    if (placed.scratch < 0) return 0;
    std::uint64_t &scratch = x86::general(regs, placed.scratch);
    const std::uint64_t old = scratch;
    scratch = placed.scratch_value;
    return old;
}

Stepped X86_64::finish_step(const Plan &plan, const Placement &placed, VirtAddr site, VirtAddr slot,
                            std::uint64_t old_scratch, Registers &regs, Memory &memory) {
    const SlotPosition position = slot_position(placed, slot, pc(regs));
    // A repeated string instruction, or a gather that was interrupted, stays on itself until it is complete.
    if (position == SlotPosition::at_start || position == SlotPosition::inside) return Stepped::again;
    if (position == SlotPosition::after) set_pc(regs, site + plan.length);
    restore_scratch(placed, old_scratch, regs);
    if (plan.insn.kind == x86::Kind::push_flags) clear_pushed_trap_flag(regs, memory);
    return Stepped::done;
}

void X86_64::abort_step(const Placement &placed, VirtAddr site, VirtAddr slot, std::uint64_t old_scratch,
                        Registers &regs) {
    restore_scratch(placed, old_scratch, regs);
    switch (slot_position(placed, slot, pc(regs))) {
    case SlotPosition::inside: regs.sp += placed.pushed; [[fallthrough]];
    case SlotPosition::at_start:
        set_pc(regs, site);
        // Linux takes the trap flag for the program's own where the next instruction sets it (enable_single_step), and
        // would leave it to the program.
        if (placed.sets_trap_flag) regs.flags &= ~std::uint64_t{x86::flag_trap};
        break;
    // The instruction is done; the task has stopped at the next one.
    case SlotPosition::after: set_pc(regs, site + placed.copy_end - placed.copy_at); break;
    case SlotPosition::elsewhere: break;
    }
}

} // namespace ktrace::arch
