// Recovery: the data by which the SIGTRAP handler in a target (recovery_handler.c) gets past a site: the copy in its
// slot, or, for an instruction that is emulated, its operands.
#include "arch/recovery.h"

#include <algorithm>

#include "x86_64/x86_64.h"

namespace ktrace::arch {

namespace {

using x86::Insn;
using x86::Kind;

ktrace_recovery_kind recovery_kind(Kind kind) {
    switch (kind) {
    case Kind::jump: return ktrace_recovery_jump;
    case Kind::call: return ktrace_recovery_call;
    case Kind::branch: return ktrace_recovery_branch;
    case Kind::loop: return ktrace_recovery_loop;
    case Kind::loop_equal: return ktrace_recovery_loop_equal;
    case Kind::loop_not_equal: return ktrace_recovery_loop_not_equal;
    case Kind::branch_count_zero: return ktrace_recovery_branch_count_zero;
    default: return ktrace_recovery_restart;
    }
}

void describe_operands(const Insn &insn, ktrace_recovery_entry &entry) {
    entry.condition = insn.condition;
    entry.address_size = insn.address_size;
    entry.target_register = insn.target_register;
    if (!insn.target_memory) return;
    const x86::MemoryOperand &operand = *insn.target_memory;
    entry.base = operand.base;
    entry.index = operand.index;
    entry.scale = operand.scale;
    entry.segment = operand.segment;
    entry.displacement = operand.displacement;
}

} // namespace

ktrace_recovery_entry X86_64::recovery_entry(const Plan &plan, const Placement &placed, VirtAddr site, VirtAddr slot) {
    ktrace_recovery_entry entry{};
    entry.site = site.value;
    entry.length = plan.length;
    entry.trap_size = static_cast<std::uint8_t>(trap_bytes().size());
    std::copy_n(reinterpret_cast<const std::uint8_t *>(plan.bytes), entry.trap_size, entry.original);
    entry.target_register = entry.base = entry.index = entry.segment = -1;
    if (plan.method == Method::emulate && placed.size == 0) {
        entry.kind = static_cast<std::uint8_t>(recovery_kind(plan.insn.kind));
        describe_operands(plan.insn, entry);
        if (plan.target) entry.target = plan.target->value;
        return entry;
    }
    entry.slot = slot.value;
    entry.copy_at = placed.copy_at;
    entry.copy_end = placed.copy_end;
    // A copy that needs a scratch register, or has no way back, cannot be run without its tracer.
    bool leaves = plan.flow == Flow::ret || plan.flow == Flow::call || plan.flow == Flow::jump;
    bool whole = placed.scratch < 0 && (placed.size > placed.copy_end || leaves);
    entry.kind = static_cast<std::uint8_t>(whole ? ktrace_recovery_slot : ktrace_recovery_restart);
    entry.go_to = (slot + placed.copy_at).value;
    return entry;
}

} // namespace ktrace::arch
