// The registers of arm64, laid out as the kernel's user_pt_regs (NT_PRSTATUS), with the thread pointer behind it, and
// user_fpsimd_state (NT_PRFPREG), so that PTRACE_GETREGSET fills them directly (native.cc proves it).
#pragma once

#include <cstdint>

namespace ktrace::arch {

struct Arm64Registers {
    std::uint64_t x[31] = {}; // x29 is the frame pointer, x30 the link register
    std::uint64_t sp = 0;
    std::uint64_t pc = 0;
    std::uint64_t pstate = 0; // as SPSR_EL1 holds it: N, Z, C, V in bits 31-28, BTYPE in 11-10
    std::uint64_t tpidr = 0;  // the thread pointer; ktrace never changes it
    bool operator==(const Arm64Registers &) const = default;
};

struct alignas(16) Arm64FpRegisters {
    std::uint8_t v[32][16] = {};
    std::uint32_t fpsr = 0, fpcr = 0;
    std::uint32_t reserved[2] = {};
};

/// FpRegisters has the whole vectors.
struct Arm64UpperRegisters {};

} // namespace ktrace::arch
