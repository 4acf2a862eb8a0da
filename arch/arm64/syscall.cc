// System calls made by an arm64 task on our behalf: number in x8, arguments in x0-x5, result in x0.
//
// At a system call's entry and exit stops the kernel shows 0 and 1 in x7 instead of the task's own value and takes no
// change of it (arch/arm64/kernel/ptrace.c, report_syscall): x7 must not be trusted there.
#include "arm64/arm64.h"

#include <algorithm>
#include <iterator>

#include "arm64/signal_frame.h"
#include "arm64/words.h"
#include "base/check.h"

namespace ktrace::arch {

namespace {
constexpr auto supervisor_call = a64_bytes(0xd4000001); // svc #0
}

std::span<const std::byte> Arm64::syscall_bytes() { return supervisor_call; }

std::span<const std::byte> Arm64::signal_trampoline() {
    // mov x8, #139 (rt_sigreturn); svc #0: the vdso's __kernel_rt_sigreturn.
    static constexpr std::byte code[] = {std::byte{0x68}, std::byte{0x11}, std::byte{0x80}, std::byte{0xd2},
                                         std::byte{0x01}, std::byte{0x00}, std::byte{0x00}, std::byte{0xd4}};
    return code;
}

std::optional<Arm64Registers> Arm64::interrupted(VirtAddr sp, Memory &memory) {
    struct {
        std::uint64_t x[31], sp, pc;
    } saved;
    static_assert(offsetof(KernelFrame, pc) - offsetof(KernelFrame, x) == offsetof(decltype(saved), pc));
    const VirtAddr at = sp + static_cast<std::int64_t>(offsetof(KernelFrame, x));
    const auto into = std::as_writable_bytes(std::span(&saved, 1));
    if (memory.read(at, into) != into.size()) return std::nullopt;
    Registers registers;
    std::copy(std::begin(saved.x), std::end(saved.x), registers.x);
    registers.sp = saved.sp;
    registers.pc = saved.pc;
    return registers;
}

void Arm64::set_syscall(Registers &regs, std::uint64_t number, std::span<const std::uint64_t> arguments) {
    KT_CHECK(arguments.size() <= 6);
    regs.x[8] = number;
    for (std::size_t i = 0; i < arguments.size(); ++i) regs.x[i] = arguments[i];
}

void Arm64::leave_slot_in_syscall(const Plan &plan, VirtAddr site, Registers &regs) {
    set_pc(regs, site + plan.length);
}

} // namespace ktrace::arch
