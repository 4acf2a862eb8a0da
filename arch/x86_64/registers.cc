// The register table: names as in the kernel's pt_regs, DWARF numbers from the x86-64 psABI (figure 3.36), in the order
// in which --regs shows them.
#include "x86_64/x86_64.h"

#include <cstddef>

namespace ktrace::arch {

namespace {

using File = RegisterInfo::File;

constexpr RegisterInfo general(std::string_view name, std::string_view alias, int dwarf, std::size_t offset) {
    return {name, alias, dwarf, File::general, static_cast<std::uint16_t>(offset), 8};
}
constexpr RegisterInfo floating(std::string_view name, int dwarf, std::size_t offset, std::uint8_t width) {
    return {name, "", dwarf, File::floating, static_cast<std::uint16_t>(offset), width};
}
constexpr RegisterInfo x87(std::string_view name, int number) {
    return floating(name, 33 + number, offsetof(X86_64FpRegisters, st) + 16 * static_cast<std::size_t>(number), 10);
}
constexpr RegisterInfo xmm(std::string_view name, int number) {
    return floating(name, 17 + number, offsetof(X86_64FpRegisters, xmm) + 16 * static_cast<std::size_t>(number), 16);
}

constexpr RegisterInfo table[] = {
    general("ax", "rax", 0, offsetof(X86_64Registers, ax)),
    general("bx", "rbx", 3, offsetof(X86_64Registers, bx)),
    general("cx", "rcx", 2, offsetof(X86_64Registers, cx)),
    general("dx", "rdx", 1, offsetof(X86_64Registers, dx)),
    general("si", "rsi", 4, offsetof(X86_64Registers, si)),
    general("di", "rdi", 5, offsetof(X86_64Registers, di)),
    general("bp", "rbp", 6, offsetof(X86_64Registers, bp)),
    general("sp", "rsp", 7, offsetof(X86_64Registers, sp)),
    general("r8", "", 8, offsetof(X86_64Registers, r8)),
    general("r9", "", 9, offsetof(X86_64Registers, r9)),
    general("r10", "", 10, offsetof(X86_64Registers, r10)),
    general("r11", "", 11, offsetof(X86_64Registers, r11)),
    general("r12", "", 12, offsetof(X86_64Registers, r12)),
    general("r13", "", 13, offsetof(X86_64Registers, r13)),
    general("r14", "", 14, offsetof(X86_64Registers, r14)),
    general("r15", "", 15, offsetof(X86_64Registers, r15)),
    general("ip", "rip", 16, offsetof(X86_64Registers, ip)), // 16 is the return address column, the pc of a frame
    general("flags", "rflags", 49, offsetof(X86_64Registers, flags)),
    general("orig_ax", "orig_rax", -1, offsetof(X86_64Registers, orig_ax)),
    general("cs", "", 51, offsetof(X86_64Registers, cs)),
    general("ss", "", 52, offsetof(X86_64Registers, ss)),
    general("ds", "", 53, offsetof(X86_64Registers, ds)),
    general("es", "", 50, offsetof(X86_64Registers, es)),
    general("fs", "", 54, offsetof(X86_64Registers, fs)),
    general("gs", "", 55, offsetof(X86_64Registers, gs)),
    general("fs_base", "fs.base", 58, offsetof(X86_64Registers, fs_base)),
    general("gs_base", "gs.base", 59, offsetof(X86_64Registers, gs_base)),
    x87("st0", 0),
    x87("st1", 1),
    x87("st2", 2),
    x87("st3", 3),
    x87("st4", 4),
    x87("st5", 5),
    x87("st6", 6),
    x87("st7", 7),
    xmm("xmm0", 0),
    xmm("xmm1", 1),
    xmm("xmm2", 2),
    xmm("xmm3", 3),
    xmm("xmm4", 4),
    xmm("xmm5", 5),
    xmm("xmm6", 6),
    xmm("xmm7", 7),
    xmm("xmm8", 8),
    xmm("xmm9", 9),
    xmm("xmm10", 10),
    xmm("xmm11", 11),
    xmm("xmm12", 12),
    xmm("xmm13", 13),
    xmm("xmm14", 14),
    xmm("xmm15", 15),
    floating("mxcsr", 64, offsetof(X86_64FpRegisters, mxcsr), 4),
    floating("fcw", 65, offsetof(X86_64FpRegisters, cwd), 2),
    floating("fsw", 66, offsetof(X86_64FpRegisters, swd), 2),
};

} // namespace

std::span<const RegisterInfo> X86_64::registers() { return table; }

UpperPart X86_64::upper_part(int dwarf) {
    constexpr int xmm0 = 17;
    constexpr std::size_t width = sizeof(X86_64UpperRegisters::zmm[0]);
    if (dwarf < xmm0 || static_cast<std::size_t>(dwarf - xmm0) >= std::size(X86_64UpperRegisters{}.zmm)) return {};
    return {static_cast<std::uint16_t>(static_cast<std::size_t>(dwarf - xmm0) * width), width};
}

std::span<const std::byte> X86_64::trap_bytes() {
    static constexpr std::byte int3[] = {std::byte{0xcc}};
    return int3;
}

} // namespace ktrace::arch
