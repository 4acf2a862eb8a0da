// Calls and returns as the System V psABI has them (x86-64 psABI 3.2): integer arguments, the return address at the
// stack pointer, the call instruction behind a return address, the stubs of procedure linkage tables (psABI 5.2).
#include "x86_64/x86_64.h"

#include <cstring>

#include "x86_64/general.h"

namespace ktrace::arch {

namespace {

constexpr unsigned argument_registers = 6;

std::uint8_t byte_at(std::span<const std::byte> code, std::size_t offset) {
    return std::to_integer<std::uint8_t>(code[offset]);
}

/// The little endian 32-bit displacement in the last four bytes of `code`.
std::int32_t last_displacement(std::span<const std::byte> code) {
    std::int32_t value;
    std::memcpy(&value, code.data() + code.size() - sizeof value, sizeof value);
    return value;
}

/// The length, from its opcode, of `ff /2` with this ModRM and SIB byte (SDM vol. 2, table 2-2).
std::size_t indirect_call_length(std::uint8_t modrm, std::uint8_t sib) {
    const unsigned mod = modrm >> 6, rm = modrm & 7;
    std::size_t length = 2;
    if (mod == 3) return length;
    if (rm == 4) ++length;
    if (mod == 1) length += 1;
    if (mod == 2 || (mod == 0 && rm == 5)) length += 4;
    if (mod == 0 && rm == 4 && (sib & 7) == 5) length += 4;
    return length;
}

bool ends_with_indirect_call(std::span<const std::byte> code, std::size_t length) {
    if (code.size() < length) return false;
    const auto call = code.last(length);
    if (byte_at(call, 0) != 0xff || ((byte_at(call, 1) >> 3) & 7) != 2) return false;
    return indirect_call_length(byte_at(call, 1), length > 2 ? byte_at(call, 2) : 0) == length;
}

/// True for a byte that stands before a call's opcode in real code: REX with a bit that such a call can use, notrack,
/// bnd, fs, gs, the address and operand size.
bool is_call_prefix(std::uint8_t byte) {
    const bool is_rex = byte == 0x48 || (byte >= 0x41 && byte <= 0x43) || (byte >= 0x49 && byte <= 0x4b);
    const bool is_legacy = byte == 0x3e || byte == 0xf2 || (byte >= 0x64 && byte <= 0x67);
    return is_rex || is_legacy;
}

/// `length` and the prefixes before it, as far as they decode to one call.
std::uint8_t with_prefixes(std::span<const std::byte> code, std::size_t length) {
    while (length < code.size() && length < X86_64::longest) {
        const auto longer = code.last(length + 1);
        x86::Insn insn;
        if (!is_call_prefix(byte_at(longer, 0)) || x86::decode(longer, insn) != x86::Decode::ok) break;
        if (insn.kind != x86::Kind::call || insn.length != longer.size()) break;
        ++length;
    }
    return static_cast<std::uint8_t>(length);
}

bool starts_with(std::span<const std::byte> code, std::initializer_list<std::uint8_t> wanted) {
    if (code.size() < wanted.size()) return false;
    std::size_t i = 0;
    for (std::uint8_t byte : wanted)
        if (byte_at(code, i++) != byte) return false;
    return true;
}

} // namespace

std::optional<std::uint64_t> X86_64::argument(const Registers &regs, Memory &memory, unsigned n) {
    static constexpr std::uint64_t Registers::*places[argument_registers] = {
        &Registers::di, &Registers::si, &Registers::dx, &Registers::cx, &Registers::r8, &Registers::r9};
    if (n < argument_registers) return regs.*places[n];
    const std::int64_t above_return_address = 8 + 8 * static_cast<std::int64_t>(n - argument_registers);
    return memory.read_value<std::uint64_t>(sp(regs) + above_return_address);
}

std::optional<VirtAddr> X86_64::return_address(const Registers &regs, Memory &memory) {
    const auto address = memory.read_value<std::uint64_t>(sp(regs));
    if (!address) return std::nullopt;
    return VirtAddr{*address};
}

bool X86_64::is_on_stack(const Frame &frame, Memory &memory) {
    const auto address = memory.read_value<std::uint64_t>(frame.sp);
    return address && *address == frame.return_address.value;
}

bool X86_64::return_at_once(Registers &regs, Memory &memory) {
    const auto to = return_address(regs, memory);
    if (!to) return false;
    regs.ip = to->value;
    regs.sp += static_cast<std::uint64_t>(return_pop);
    return true;
}

bool X86_64::redirect_return(Registers &regs, Memory &memory, VirtAddr to) {
    return memory.write_value(sp(regs), to.value);
}

// Read backwards, bytes can be two calls at once: the disp32 of an indirect call can look like e8. The direct one is
// taken then: it is by far the more frequent, and a target that is not one hits no function's start but by chance.
std::optional<CallBefore> X86_64::call_before(std::span<const std::byte> code, VirtAddr end) {
    constexpr std::size_t direct_length = 5, longest_indirect = 7;
    if (code.size() >= direct_length && byte_at(code, code.size() - direct_length) == 0xe8)
        return CallBefore{with_prefixes(code, direct_length), end + last_displacement(code)};
    for (std::size_t length = 2; length <= longest_indirect; ++length)
        if (ends_with_indirect_call(code, length)) return CallBefore{with_prefixes(code, length), std::nullopt};
    return std::nullopt;
}

std::optional<VirtAddr> X86_64::plt_target_slot(std::span<const std::byte> code, VirtAddr at) {
    constexpr std::size_t displacement_size = 4;
    std::size_t opcode = 0;
    if (starts_with(code, {0xf3, 0x0f, 0x1e, 0xfa})) opcode += 4; // endbr64
    const auto body = code.subspan(opcode);
    if (starts_with(body, {0xff, 0x25}))
        opcode += 2; // jmp *disp(%rip)
    else if (starts_with(body, {0xf2, 0xff, 0x25}) || starts_with(body, {0x3e, 0xff, 0x25}))
        opcode += 3; // bnd jmp, notrack jmp
    else if (starts_with(body, {0x4c, 0x8b, 0x1d}))
        opcode += 3; // mov disp(%rip), %r11: a stub against speculation, which then jumps through r11
    else
        return std::nullopt;
    const std::size_t length = opcode + displacement_size;
    if (code.size() < length) return std::nullopt;
    return at + static_cast<std::int64_t>(length) + last_displacement(code.first(length));
}

} // namespace ktrace::arch
