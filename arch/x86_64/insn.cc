// The only file that knows Zydis: its decoded instruction becomes our Insn. Bytes that Zydis does not decode are
// `invalid`; nothing is guessed.
#include "x86_64/insn.h"

#include <Zydis/Decoder.h>
#include <Zydis/Mnemonic.h>
#include <Zydis/Register.h>

#include "base/check.h"

namespace ktrace::arch::x86 {

namespace {

using Instruction = ZydisDecodedInstruction;
using Operands = std::span<const ZydisDecodedOperand>;

const ZydisDecoder &decoder() {
    static const ZydisDecoder instance = [] {
        ZydisDecoder made;
        KT_CHECK(ZYAN_SUCCESS(ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)));
        return made;
    }();
    return instance;
}

bool has(const Instruction &raw, std::uint64_t attributes) { return (raw.attributes & attributes) != 0; }

Kind kind_of_jump_or_call(const Instruction &raw, Kind near) {
    return raw.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? Kind::far_transfer : near;
}

/// 70-7f and 0f 80-8f. (Zydis counts xend and a coprocessor's branches on mask registers among the conditional ones,
/// too.)
bool is_jcc(const Instruction &raw) {
    if (raw.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) return false;
    const unsigned row = raw.opcode & 0xf0u;
    return (raw.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && row == 0x70) ||
           (raw.opcode_map == ZYDIS_OPCODE_MAP_0F && row == 0x80);
}

Kind kind_of(const Instruction &raw) {
    switch (raw.mnemonic) {
    case ZYDIS_MNEMONIC_JMP: return kind_of_jump_or_call(raw, Kind::jump);
    case ZYDIS_MNEMONIC_CALL: return kind_of_jump_or_call(raw, Kind::call);
    case ZYDIS_MNEMONIC_RET: return kind_of_jump_or_call(raw, Kind::ret);
    case ZYDIS_MNEMONIC_LOOP: return Kind::loop;
    case ZYDIS_MNEMONIC_LOOPE: return Kind::loop_equal;
    case ZYDIS_MNEMONIC_LOOPNE: return Kind::loop_not_equal;
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ: return Kind::branch_count_zero;
    case ZYDIS_MNEMONIC_XBEGIN: return Kind::transaction;
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFD:
    case ZYDIS_MNEMONIC_PUSHFQ: return Kind::push_flags;
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ: return Kind::pop_flags;
    case ZYDIS_MNEMONIC_SYSCALL: return Kind::syscall;
    case ZYDIS_MNEMONIC_SYSENTER: return Kind::sysenter;
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_INT1: return Kind::breakpoint;
    case ZYDIS_MNEMONIC_INT: return raw.raw.imm[0].value.u == 0x80 ? Kind::syscall32 : Kind::interrupt;
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_UIRET:
    case ZYDIS_MNEMONIC_RSM: return Kind::interrupt_return;
    case ZYDIS_MNEMONIC_ENCLU: return Kind::enclave;
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2: return Kind::undefined;
    default: return is_jcc(raw) ? Kind::branch : Kind::plain;
    }
}

bool is_near_transfer(Kind kind) {
    switch (kind) {
    case Kind::jump:
    case Kind::call:
    case Kind::branch:
    case Kind::loop:
    case Kind::loop_equal:
    case Kind::loop_not_equal:
    case Kind::branch_count_zero:
    case Kind::transaction: return true;
    default: return false;
    }
}

bool has_narrowing_prefix(const Instruction &raw) {
    if (has(raw, ZYDIS_ATTRIB_HAS_REX) && raw.raw.rex.W) return false;
    for (unsigned i = 0; i < raw.raw.prefix_count; ++i)
        if (raw.raw.prefixes[i].value == 0x66) return true;
    return false;
}

std::uint8_t offset_behind_lock(const Instruction &raw) {
    constexpr std::uint8_t lock = 0xf0;
    for (std::uint8_t i = 0; i < raw.raw.prefix_count; ++i)
        if (raw.raw.prefixes[i].value == lock) return static_cast<std::uint8_t>(i + 1);
    return 0;
}

/// 0-15 for any part of a general register, register_ip for the instruction pointer, else no_register.
std::int8_t number_of(ZydisRegister reg) {
    if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP) return register_ip;
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15) return no_register;
    return static_cast<std::int8_t>(whole - ZYDIS_REGISTER_RAX);
}

MemoryOperand memory_operand(const ZydisDecodedOperandMem &raw) {
    MemoryOperand operand;
    operand.base = number_of(raw.base);
    operand.index = number_of(raw.index);
    operand.scale = raw.index == ZYDIS_REGISTER_NONE ? 1 : raw.scale;
    operand.displacement = raw.disp.has_displacement ? raw.disp.value : 0;
    if (raw.segment == ZYDIS_REGISTER_FS) operand.segment = segment_fs;
    if (raw.segment == ZYDIS_REGISTER_GS) operand.segment = segment_gs;
    return operand;
}

void read_transfer(const Instruction &raw, Operands operands, Insn &insn) {
    insn.narrow_branch = has_narrowing_prefix(raw);
    if (insn.kind == Kind::branch) insn.condition = raw.opcode & 0xf;
    const ZydisDecodedOperand &target = operands[0];
    if (target.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        insn.relative = target.imm.value.s;
        insn.relative_offset = raw.raw.imm[0].offset;
        insn.relative_size = raw.raw.imm[0].size / 8;
    } else if (target.type == ZYDIS_OPERAND_TYPE_REGISTER) {
        insn.target_register = number_of(target.reg.value);
    } else {
        insn.target_memory = memory_operand(target.mem);
    }
}

ExtensionBit extension_bit(const Instruction &raw) {
    constexpr std::uint8_t rex_b = 0x01, vex_b = 0x20, evex_b = 0x20;
    auto at = [](unsigned offset) { return static_cast<std::int8_t>(offset); };
    switch (raw.encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_VEX:
        if (raw.raw.vex.size == 2) return {};
        return {at(raw.raw.vex.offset + 1), vex_b, true};
    case ZYDIS_INSTRUCTION_ENCODING_XOP: return {at(raw.raw.xop.offset + 1), vex_b, true};
    case ZYDIS_INSTRUCTION_ENCODING_EVEX: return {at(raw.raw.evex.offset + 1), evex_b, true};
    case ZYDIS_INSTRUCTION_ENCODING_MVEX: return {at(raw.raw.mvex.offset + 1), evex_b, true};
    default:
        if (!has(raw, ZYDIS_ATTRIB_HAS_REX)) return {};
        return {at(raw.raw.rex.offset), rex_b, false};
    }
}

void note_register(Insn &insn, std::int8_t number) {
    if (number >= 0 && number < 16) insn.used = static_cast<std::uint16_t>(insn.used | (1u << number));
}

void read_operand(const Instruction &raw, const ZydisDecodedOperand &operand, Insn &insn) {
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) note_register(insn, number_of(operand.reg.value));
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) return;
    std::int8_t base = number_of(operand.mem.base);
    note_register(insn, base);
    note_register(insn, number_of(operand.mem.index));
    if (base != register_ip) return;
    insn.displacement_offset = raw.raw.disp.offset;
    insn.modrm_offset = raw.raw.modrm.offset;
    insn.extension = extension_bit(raw);
}

} // namespace

Decode decode(std::span<const std::byte> code, Insn &insn) {
    Instruction raw;
    ZydisDecodedOperand storage[ZYDIS_MAX_OPERAND_COUNT];
    ZyanStatus status = ZydisDecoderDecodeFull(&decoder(), code.data(), code.size(), &raw, storage);
    if (status == ZYDIS_STATUS_NO_MORE_DATA) return Decode::truncated;
    if (!ZYAN_SUCCESS(status)) return Decode::invalid;

    Operands operands(storage, raw.operand_count);
    insn = {};
    insn.length = raw.length;
    insn.kind = kind_of(raw);
    insn.address_size = raw.address_width / 8;
    insn.does_nothing = raw.mnemonic == ZYDIS_MNEMONIC_NOP;
    insn.behind_lock = offset_behind_lock(raw);
    insn.repeats = has(raw, ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
    if (is_near_transfer(insn.kind)) read_transfer(raw, operands, insn);
    for (const ZydisDecodedOperand &operand : operands) read_operand(raw, operand, insn);
    return Decode::ok;
}

} // namespace ktrace::arch::x86
