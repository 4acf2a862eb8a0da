// The general registers of x86-64 by the number that instructions encode (0 ax, 1 cx, 2 dx, 3 bx, 4 sp, 5 bp, 6 si, 7
// di, 8-15): the order of ModRM, SIB and REX, which is neither DWARF's nor the kernel's.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "x86_64/registers.h"

namespace ktrace::arch::x86 {

inline constexpr std::uint64_t X86_64Registers::*general_by_number[16] = {
    &X86_64Registers::ax,  &X86_64Registers::cx,  &X86_64Registers::dx,  &X86_64Registers::bx,
    &X86_64Registers::sp,  &X86_64Registers::bp,  &X86_64Registers::si,  &X86_64Registers::di,
    &X86_64Registers::r8,  &X86_64Registers::r9,  &X86_64Registers::r10, &X86_64Registers::r11,
    &X86_64Registers::r12, &X86_64Registers::r13, &X86_64Registers::r14, &X86_64Registers::r15,
};

/// The general register with the encoding's number 0-15.
inline std::uint64_t &general(X86_64Registers &regs, int number) {
    KT_CHECK(number >= 0 && number < 16);
    return regs.*general_by_number[number];
}
inline std::uint64_t general(const X86_64Registers &regs, int number) {
    KT_CHECK(number >= 0 && number < 16);
    return regs.*general_by_number[number];
}

// Bits of the flags register (Intel SDM vol. 1, 3.4.3).
inline constexpr std::uint64_t flag_carry = 1 << 0, flag_parity = 1 << 2, flag_zero = 1 << 6, flag_sign = 1 << 7,
                               flag_trap = 1 << 8, flag_overflow = 1 << 11;

} // namespace ktrace::arch::x86
