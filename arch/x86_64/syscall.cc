// System calls that a task makes on our behalf, and those that a slot's copy of a system call instruction makes on its
// own (x86-64 psABI A.2.1: number in rax, arguments in rdi, rsi, rdx, r10, r8, r9).
#include "x86_64/x86_64.h"

#include "base/check.h"
#include "x86_64/general.h"

namespace ktrace::arch {

std::span<const std::byte> X86_64::syscall_bytes() {
    static constexpr std::byte bytes[] = {std::byte{0x0f}, std::byte{0x05}};
    return bytes;
}

std::span<const std::byte> X86_64::signal_trampoline() {
    // mov $15,%rax (rt_sigreturn); syscall: what glibc's __restore_rt holds, and libgcc's unwinder looks for.
    static constexpr std::byte bytes[] = {std::byte{0x48}, std::byte{0xc7}, std::byte{0xc0},
                                          std::byte{0x0f}, std::byte{0},    std::byte{0},
                                          std::byte{0},    std::byte{0x0f}, std::byte{0x05}};
    return bytes;
}

void X86_64::set_syscall(Registers &regs, std::uint64_t number, std::span<const std::uint64_t> arguments) {
    static constexpr std::uint64_t Registers::*places[] = {&Registers::di,  &Registers::si, &Registers::dx,
                                                           &Registers::r10, &Registers::r8, &Registers::r9};
    KT_CHECK(arguments.size() <= std::size(places));
    regs.ax = number;
    regs.flags &= ~std::uint64_t{x86::flag_trap}; // what follows the call is none of the program's code
    // No call is in progress: the kernel must not restart one by moving the pc back.
    regs.orig_ax = ~std::uint64_t{0};
    for (std::size_t i = 0; i < arguments.size(); ++i) regs.*places[i] = arguments[i];
}

void X86_64::leave_slot_in_syscall(const Plan &plan, VirtAddr site, Registers &regs) {
    set_pc(regs, site + plan.length);
    if (plan.insn.kind == x86::Kind::syscall) regs.cx = regs.ip;
}

} // namespace ktrace::arch
