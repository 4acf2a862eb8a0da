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
    regs.flags &= ~std::uint64_t{x86::flag_trap}; // the code behind the call is not the program's
    // No call is in progress: the kernel must not restart one by moving the pc back.
    regs.orig_ax = ~std::uint64_t{0};
    for (std::size_t i = 0; i < arguments.size(); ++i) regs.*places[i] = arguments[i];
}

std::uint64_t X86_64::own_syscall_number(std::uint64_t foreign) {
    switch (foreign) {
    case 2: return 57;        // fork
    case 3: return 0;         // read
    case 4: return 1;         // write
    case 6: return 3;         // close
    case 120: return 56;      // clone
    case 145: return 19;      // readv
    case 146: return 20;      // writev
    case 177:                 // rt_sigtimedwait
    case 421: return 128;     // rt_sigtimedwait_time64
    case 187:                 // sendfile
    case 239: return 40;      // sendfile64
    case 247: return 208;     // io_getevents
    case 256: return 232;     // epoll_wait
    case 313: return 275;     // splice
    case 319: return 281;     // epoll_pwait
    case 337: return 299;     // recvmmsg
    case 345: return 307;     // sendmmsg
    case 362: return 42;      // connect
    case 364: return 288;     // accept4
    case 369: return 44;      // sendto
    case 370: return 46;      // sendmsg
    case 371: return 45;      // recvfrom
    case 372: return 47;      // recvmsg
    case 420: return 220;     // semtimedop_time64
    case 426:                 // io_uring_enter
    case 435:                 // clone3
    case 441: return foreign; // epoll_pwait2
    default: return no_syscall;
    }
}

void X86_64::leave_slot_in_syscall(const Plan &plan, VirtAddr site, Registers &regs) {
    set_pc(regs, site + plan.length);
    if (plan.insn.kind == x86::Kind::syscall) regs.cx = regs.ip;
}

} // namespace ktrace::arch
