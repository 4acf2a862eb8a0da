// The registers of x86-64, laid out as the kernel's user_regs_struct and user_fpregs_struct (native.cc proves it), so
// that PTRACE_GETREGS and PTRACE_GETFPREGS fill them directly.
#pragma once

#include <cstdint>

namespace ktrace::arch {

struct X86_64Registers {
    std::uint64_t r15 = 0, r14 = 0, r13 = 0, r12 = 0, bp = 0, bx = 0, r11 = 0, r10 = 0, r9 = 0, r8 = 0;
    std::uint64_t ax = 0, cx = 0, dx = 0, si = 0, di = 0, orig_ax = 0, ip = 0, cs = 0, flags = 0, sp = 0, ss = 0;
    std::uint64_t fs_base = 0, gs_base = 0, ds = 0, es = 0, fs = 0, gs = 0;
    bool operator==(const X86_64Registers &) const = default;
};

/// FXSAVE's layout (Intel SDM vol. 1, 10.5.1): x87 registers 16 bytes apart, then xmm0-15.
struct X86_64FpRegisters {
    std::uint16_t cwd = 0, swd = 0, ftw = 0, fop = 0;
    std::uint64_t rip = 0, rdp = 0;
    std::uint32_t mxcsr = 0, mxcsr_mask = 0;
    std::uint8_t st[8][16] = {};
    std::uint8_t xmm[16][16] = {};
    std::uint32_t padding[24] = {};
};

/// Bytes 16 to 63 of zmm0-15, which FXSAVE's layout leaves out.
struct X86_64UpperRegisters {
    std::uint8_t zmm[16][48] = {};
};

} // namespace ktrace::arch
