// The agent's entry. x16: what the stub hands on, of which the second word is the site's address; x28: the registers,
// as Arm64Registers has them up to pstate (of which there are the flags), while the agent runs.
#include <array>
#include <cstddef>
#include <iterator>

#include "arm64/detour/agent_stack.h"
#include "arm64/detour/detour.h"
#include "arm64/words.h"

namespace ktrace::arch {

namespace {

constexpr std::uint32_t code[] = {
    0xd10483ff, // 0: sub sp, sp, #288
    0xa90007e0, // 4: stp x0, x1, [sp]
    0xa9010fe2, // 8: stp x2, x3, [sp, #16]
    0xa90217e4, // 12
    0xa9031fe6, // 16
    0xa90427e8, // 20
    0xa9052fea, // 24
    0xa90637ec, // 28
    0xa9073fee, // 32: stp x14, x15, [sp, #112]
    0xf94093e0, // 36: ldr x0, [sp, #288]: x16, as the stub has kept it
    0xa90847e0, // 40: stp x0, x17, [sp, #128]
    0xa9094ff2, // 44
    0xa90a57f4, // 48
    0xa90b5ff6, // 52
    0xa90c67f8, // 56
    0xa90d6ffa, // 60
    0xa90e77fc, // 64: stp x28, x29, [sp, #224]
    0xf94097e0, // 68: ldr x0, [sp, #296]: x30 likewise
    0x9104c3e1, // 72: add x1, sp, #304: as it was before the stub
    0xa90f07e0, // 76: stp x0, x1, [sp, #240]
    0xf9400600, // 80: ldr x0, [x16, #8]
    0xd53b4201, // 84: mrs x1, nzcv: nothing so far has changed them
    0xa91007e0, // 88: stp x0, x1, [sp, #256]
    0xf9008bfe, // 92: str x30, [sp, #272]
    0x910003e0, // 96: mov x0, sp
    0xaa1003e1, // 100: mov x1, x16
    0x910003fc, // 104: mov x28, sp
    0x94000000, // 108: bl the agent
    0xb40002a1, // 112: cbz x1, 196: the bell
    0xb4000060, // 116: cbz x0, 128
    0xc89ffc20, // 120: stlr x0, [x1]: what was written before is there, too
    0x14000003, // 124: b 136
    0x52800020, // 128: mov w0, #1
    0xf820003f, // 132: stadd x0, [x1]
    0xf94087e0, // 136: ldr x0, [sp, #264]
    0xd51b4200, // 140: msr nzcv, x0
    0xf9408bfe, // 144: ldr x30, [sp, #272]
    0xf94073fc, // 148: ldr x28, [sp, #224]
    0xa948cbf1, // 152: ldp x17, x18, [sp, #136]
    0xa9473fee, // 156
    0xa94637ec, // 160
    0xa9452fea, // 164
    0xa94427e8, // 168
    0xa9431fe6, // 172
    0xa94217e4, // 176
    0xa9410fe2, // 180
    0xa94007e0, // 184: ldp x0, x1, [sp]
    0x910483ff, // 188: add sp, sp, #288
    0xd65f03c0, // 192: ret
    0xd42d6e80, // 196: the bell
    0x17fffff0, // 200: b 136, where no tracer has heard it
};
// From the start on: what is true of a thread whose pc is there, or behind it.
constexpr std::uint64_t stack_is_lower = 4, two_are_kept = 8, all_are_kept = 108, is_stored = 124, adds = 128,
                        is_added = 136, stack_is_back = 192, bell_at = 196;
constexpr std::size_t call_at = 108, size = (sizeof code + 15) & ~std::size_t{15};
constexpr std::size_t frame_size = offsetof(Arm64Registers, tpidr), return_at = frame_size,
                      lowered_by = frame_size + 16;
static_assert(lowered_by == 288 && kept_by_stub == 16);
constexpr std::uint64_t flags = std::uint64_t{0xf} << 28; // of pstate
static_assert(offsetof(Arm64Registers, sp) == 248 && offsetof(Arm64Registers, pstate) == 264);

bool read_frame(Arm64Registers &registers, Memory &memory, std::uint64_t frame, std::size_t bytes) {
    return memory.read(VirtAddr{frame}, std::as_writable_bytes(std::span(&registers, 1)).first(bytes)) == bytes;
}

/// Those that the stub keeps at `kept`.
bool leave_stub(Arm64Registers &registers, Memory &memory, std::uint64_t kept) {
    std::uint64_t words[2];
    if (memory.read(VirtAddr{kept}, std::as_writable_bytes(std::span(words))) != sizeof words) return false;
    registers.x[16] = words[0];
    registers.x[30] = words[1];
    registers.sp = kept + kept_by_stub;
    return true;
}

} // namespace

AgentEntry Arm64Detour::agent_entry() {
    AgentEntry entry;
    for (std::size_t i = 0; i < std::size(code); i++) {
        const std::size_t at = i * a64_size;
        const std::uint32_t word = at == call_at ? code[i] | static_cast<std::uint32_t>((size - at) / 4) : code[i];
        const auto bytes = a64_bytes(word);
        entry.bytes.insert(entry.bytes.end(), bytes.begin(), bytes.end());
    }
    entry.bell = bell_at;
    entry.bytes.resize(size);
    return entry;
}

std::optional<OutOfAgent> Arm64Detour::leave_agent(std::uint64_t offset, Registers &registers, Memory &memory) {
    const bool is_in_entry = offset < size;
    const bool is_outside_frame = offset < all_are_kept || (is_in_entry && offset == stack_is_back);
    OutOfAgent out;
    out.has_effect =
        is_in_entry && ((offset >= is_stored && offset < adds) || (offset >= is_added && offset < bell_at));
    if (!is_outside_frame) {
        const std::uint64_t frame = is_in_entry ? registers.sp : registers.x[28];
        const auto [pc, pstate] = std::array{registers.pc, registers.pstate};
        const auto in_stub = memory.read_value<std::uint64_t>(VirtAddr{frame + return_at});
        if (!in_stub || !read_frame(registers, memory, frame, frame_size)) return std::nullopt;
        registers.pc = pc;
        registers.pstate = (pstate & ~flags) | (registers.pstate & flags);
        out.in_stub = VirtAddr{*in_stub};
        return out;
    }
    out.in_stub = VirtAddr{registers.x[30]};
    const bool is_lower = offset >= stack_is_lower && offset != stack_is_back;
    if (is_lower && offset >= two_are_kept && !read_frame(registers, memory, registers.sp, 2 * sizeof registers.x[0]))
        return std::nullopt;
    if (!leave_stub(registers, memory, registers.sp + (is_lower ? lowered_by : 0))) return std::nullopt;
    return out;
}

} // namespace ktrace::arch
