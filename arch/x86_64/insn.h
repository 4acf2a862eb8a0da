// Insn: what the rest of this ISA needs to know of one decoded instruction, without the decoder's own types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ktrace::arch::x86 {

/// Instructions sorted by what a displaced copy of them would get wrong.
enum class Kind : std::uint8_t {
    plain,             // works anywhere, but for a pc-relative operand
    jump,              // near jmp
    call,              // near call
    branch,            // jcc
    loop,              // loop
    loop_equal,        // loope
    loop_not_equal,    // loopne
    branch_count_zero, // jecxz, jrcxz
    ret,               // near ret
    transaction,       // xbegin: its abort handler is pc-relative
    push_flags,        // shows the trap flag
    pop_flags,         // changes the trap flag
    syscall,           // syscall: leaves the pc in rcx
    syscall32,         // int 0x80
    sysenter,
    breakpoint,       // int3, int1
    interrupt,        // int n
    far_transfer,     // far call, jmp, ret
    interrupt_return, // iret, sysret, sysexit, uiret, rsm
    enclave,          // enclu
    undefined,        // ud0, ud1, ud2: there to fault
};

/// Numbers of registers in memory operands beyond the general 0-15.
inline constexpr std::int8_t no_register = -1, register_ip = 16;
/// Segments that have a base in 64-bit mode.
inline constexpr std::int8_t segment_fs = 4, segment_gs = 5;

/// [segment: base + index * scale + displacement]
struct MemoryOperand {
    std::int8_t base = no_register; // 0-15, register_ip
    std::int8_t index = no_register;
    std::uint8_t scale = 1;
    std::int8_t segment = no_register; // segment_fs, segment_gs
    std::int64_t displacement = 0;
};

/// A bit of the encoding (REX.B, VEX.B, EVEX.B) that extends ModRM.rm.
struct ExtensionBit {
    std::int8_t offset = -1; // of its byte in the instruction, -1: the encoding has none, rm is 0-7
    std::uint8_t mask = 0;
    bool inverted = false; // VEX, XOP, EVEX: 1 means rm 0-7
};

struct Insn {
    std::uint8_t length = 0;
    Kind kind = Kind::plain;
    std::uint8_t condition = 0;    // branch: the condition code, 0-15 (SDM vol. 2, appendix B.1.4.7)
    std::uint8_t address_size = 8; // bytes: 8, or 4 with prefix 67
    bool narrow_branch = false;    // a near transfer with prefix 66 and no REX.W: Intel and AMD disagree about it
    bool does_nothing = false;     // nop, in all its lengths
    bool repeats = false;          // a string instruction with rep, repe, repne
    std::optional<std::int64_t> relative; // transfers and xbegin: the target's distance from the next instruction
    std::uint8_t relative_offset = 0, relative_size = 0; // where that is in the bytes, bytes
    std::int8_t target_register = no_register;           // jump, call through a register
    std::optional<MemoryOperand> target_memory;          // jump, call through memory
    std::uint8_t displacement_offset = 0;                // a pc-relative operand: where its disp32 is, 0: there is none
    std::uint8_t modrm_offset = 0;                       // of that operand
    ExtensionBit extension;                              // of that operand
    std::uint8_t behind_lock = 0;                        // offset of the byte behind prefix lock, 0: there is none
    std::uint16_t used = 0; // general registers that it reads or writes, explicitly or not: bit n is number n
};

enum class Decode : std::uint8_t { ok, truncated, invalid };

/// Decodes the first instruction of `code` in 64-bit mode. `insn` is meaningful for `ok` only.
Decode decode(std::span<const std::byte> code, Insn &insn);

} // namespace ktrace::arch::x86
