// Emulate: near jumps, calls and conditional branches done on the registers (Intel SDM vol. 2: CALL, JMP, Jcc, LOOP).
//
// Invariants: memory is written before any register, and a fault leaves the registers as they were, so that the
// instruction can be said to have faulted, or be run again.
#include "x86_64/x86_64.h"

#include "x86_64/general.h"

namespace ktrace::arch {

namespace {

using x86::Insn;
using x86::Kind;
using Fault = Emulated::Fault;

constexpr int number_cx = 1, number_sp = 4, number_bp = 5;

Emulated faulted(VirtAddr at, Fault fault) {
    Emulated outcome;
    outcome.outcome = Emulated::Outcome::fault;
    outcome.fault = fault;
    outcome.fault_address = fault == Fault::page ? at : VirtAddr{};
    return outcome;
}

/// False for addresses that no processor of 48 bit addresses takes. Those of 57 bits are known by what is mapped there.
bool is_canonical(std::uint64_t address) {
    return static_cast<std::int64_t>(address << 16) >> 16 == static_cast<std::int64_t>(address);
}

Fault fault_of_access(std::uint64_t address, bool on_stack) {
    if (is_canonical(address)) return Fault::page;
    return on_stack ? Fault::stack : Fault::protection;
}

/// The effective address (SDM vol. 1, 3.7.5): truncated to the address size, then the segment's base is added.
std::uint64_t effective_address(const Insn &insn, std::uint64_t next, const X86_64Registers &regs) {
    const x86::MemoryOperand &operand = *insn.target_memory;
    std::uint64_t address = static_cast<std::uint64_t>(operand.displacement);
    if (operand.base == x86::register_ip)
        address += next;
    else if (operand.base != x86::no_register)
        address += x86::general(regs, operand.base);
    if (operand.index != x86::no_register) address += x86::general(regs, operand.index) * operand.scale;
    if (insn.address_size == 4) address = static_cast<std::uint32_t>(address);
    if (operand.segment == x86::segment_fs) address += regs.fs_base;
    if (operand.segment == x86::segment_gs) address += regs.gs_base;
    return address;
}

bool is_on_stack(const x86::MemoryOperand &operand) {
    return operand.segment == x86::no_register && (operand.base == number_sp || operand.base == number_bp);
}

/// False where a transfer to `target` faults before it is done.
bool may_go_to(std::uint64_t target, Memory &memory) {
    return is_canonical(target) || memory.read_value<std::byte>(VirtAddr{target}).has_value();
}

/// Where a jump or call goes. On a fault `fault` is filled in.
std::optional<std::uint64_t> transfer_target(const X86_64Plan &plan, std::uint64_t next, const X86_64Registers &regs,
                                             Memory &memory, Emulated &fault) {
    const Insn &insn = plan.insn;
    if (insn.relative) return next + static_cast<std::uint64_t>(*insn.relative);
    std::uint64_t target = 0;
    if (insn.target_register != x86::no_register) {
        target = x86::general(regs, insn.target_register);
    } else {
        const std::uint64_t address = effective_address(insn, next, regs);
        const auto loaded = memory.read_value<std::uint64_t>(VirtAddr{address});
        if (!loaded) {
            fault = faulted(VirtAddr{address}, fault_of_access(address, is_on_stack(*insn.target_memory)));
            return std::nullopt;
        }
        target = *loaded;
    }
    return target;
}

Emulated emulate_jump(const X86_64Plan &plan, std::uint64_t next, X86_64Registers &regs, Memory &memory) {
    Emulated outcome;
    auto target = transfer_target(plan, next, regs, memory, outcome);
    if (!target) return outcome;
    if (!may_go_to(*target, memory)) return faulted({}, Fault::protection);
    regs.ip = *target;
    return outcome;
}

Emulated emulate_call(const X86_64Plan &plan, std::uint64_t next, X86_64Registers &regs, Memory &memory) {
    Emulated outcome;
    auto target = transfer_target(plan, next, regs, memory, outcome);
    if (!target) return outcome;
    const std::uint64_t pushed_at = regs.sp - sizeof next;
    if (!memory.write_value(VirtAddr{pushed_at}, next)) {
        return faulted(VirtAddr{pushed_at}, fault_of_access(pushed_at, /*on_stack=*/true));
    }
    // Processors check the target last: such a call faults with the return address in memory and sp where it was.
    if (!may_go_to(*target, memory)) return faulted({}, Fault::protection);
    regs.sp = pushed_at;
    regs.ip = *target;
    return outcome;
}

bool condition_holds(std::uint8_t condition, std::uint64_t flags) {
    const bool less = ((flags & x86::flag_sign) != 0) != ((flags & x86::flag_overflow) != 0);
    bool holds = false;
    switch (condition >> 1) {
    case 0: holds = (flags & x86::flag_overflow) != 0; break;
    case 1: holds = (flags & x86::flag_carry) != 0; break;
    case 2: holds = (flags & x86::flag_zero) != 0; break;
    case 3: holds = (flags & (x86::flag_carry | x86::flag_zero)) != 0; break;
    case 4: holds = (flags & x86::flag_sign) != 0; break;
    case 5: holds = (flags & x86::flag_parity) != 0; break;
    case 6: holds = less; break;
    case 7: holds = less || (flags & x86::flag_zero) != 0; break;
    }
    return holds != ((condition & 1) != 0);
}

/// cx in the width of the address size.
std::uint64_t counter(const Insn &insn, std::uint64_t value) {
    return insn.address_size == 4 ? static_cast<std::uint32_t>(value) : value;
}

bool loop_taken(const Insn &insn, std::uint64_t count, std::uint64_t flags) {
    const bool zero = (flags & x86::flag_zero) != 0;
    if (insn.kind == Kind::loop_equal) return count != 0 && zero;
    if (insn.kind == Kind::loop_not_equal) return count != 0 && !zero;
    return count != 0;
}

Emulated branch(bool taken, const Insn &insn, std::uint64_t next, X86_64Registers &regs) {
    regs.ip = taken ? next + static_cast<std::uint64_t>(*insn.relative) : next;
    return {};
}

} // namespace

Emulated X86_64::emulate(const Plan &plan, VirtAddr site, Registers &regs, Memory &memory) {
    KT_CHECK(plan.method == Method::emulate);
    const Insn &insn = plan.insn;
    const std::uint64_t next = (site + plan.length).value;
    switch (insn.kind) {
    case Kind::jump: return emulate_jump(plan, next, regs, memory);
    case Kind::call: return emulate_call(plan, next, regs, memory);
    case Kind::branch: return branch(condition_holds(insn.condition, regs.flags), insn, next, regs);
    case Kind::branch_count_zero: return branch(counter(insn, regs.cx) == 0, insn, next, regs);
    default: {
        std::uint64_t &cx = x86::general(regs, number_cx);
        cx = counter(insn, counter(insn, cx) - 1);
        return branch(loop_taken(insn, cx, regs.flags), insn, next, regs);
    }
    }
}

} // namespace ktrace::arch
