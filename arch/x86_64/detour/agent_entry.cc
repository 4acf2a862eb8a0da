// The agent's entry. rdx: what the stub hands on, of which the second word is the site's address; r15: the registers,
// as X86_64Registers has them up to ss, while the agent runs.
#include <cstddef>
#include <cstring>
#include <iterator>

#include "x86_64/detour/agent_stack.h"
#include "x86_64/detour/detour.h"

namespace ktrace::arch {

namespace {

struct Step {
    std::uint8_t size;
    std::uint8_t bytes[8];
};

// Each pushes a word, but for the second: the last register first. ss, sp, flags, cs, the site, no system call, di, si,
// dx, cx, ax, r8 to r11, bx, bp, r12 to r15.
constexpr Step pushes[] = {
    {2, {0x6a, 0x2b}},                                     // push $0x2b
    {8, {0x48, 0x8d, 0x84, 0x24, 0xa0, 0x00, 0x00, 0x00}}, // lea 160(%rsp), %rax: as it was before the stub
    {1, {0x50}},
    {1, {0x9c}}, // pushf: nothing so far has changed them
    {2, {0x6a, 0x33}},
    {3, {0xff, 0x72, 0x08}}, // push 8(%rdx)
    {2, {0x6a, 0xff}},
    {1, {0x57}},
    {1, {0x56}},
    {4, {0xff, 0x74, 0x24, 0x50}}, // push 80(%rsp): as the stub has kept it
    {1, {0x51}},
    {4, {0xff, 0x74, 0x24, 0x58}}, // push 88(%rsp): likewise
    {2, {0x41, 0x50}},
    {2, {0x41, 0x51}},
    {2, {0x41, 0x52}},
    {2, {0x41, 0x53}},
    {1, {0x53}},
    {1, {0x55}},
    {2, {0x41, 0x54}},
    {2, {0x41, 0x55}},
    {2, {0x41, 0x56}},
    {2, {0x41, 0x57}},
};
constexpr std::size_t lea_is = 1, words = std::size(pushes) - 1, frame_size = words * 8;
static_assert(frame_size == offsetof(X86_64Registers, fs_base) && frame_size == X86_64Detour::agent_sees);
static_assert(8 + 8 + agent_stub_lowers_by == 0xa0, "the second step");

constexpr std::uint8_t behind_pushes[] = {
    0x48, 0x89, 0xe7,                               // 0: mov %rsp, %rdi
    0x49, 0x89, 0xe7,                               // 3: mov %rsp, %r15
    0x48, 0x89, 0xd6,                               // 6: mov %rdx, %rsi
    0xe8, 0x00, 0x00, 0x00, 0x00,                   // 9: call the agent
    0x48, 0x85, 0xd2,                               // 14: test %rdx, %rdx
    0x74, 0x4d,                                     // 17: je 96, the bell
    0x48, 0x85, 0xc0,                               // 19: test %rax, %rax
    0x74, 0x05,                                     // 22: je 29
    0x48, 0x89, 0x02,                               // 24: mov %rax, (%rdx)
    0xeb, 0x04,                                     // 27: jmp 33
    0xf0, 0x48, 0xff, 0x02,                         // 29: lock incq (%rdx)
    0x48, 0x8b, 0x84, 0x24, 0x90, 0x00, 0x00, 0x00, // 33: mov the flags, %rax
    0x86, 0xe0,                                     // 41: xchg %ah, %al
    0x24, 0x08,                                     // 43: and $8, %al: the overflow flag
    0x04, 0x78,                                     // 45: add $0x78, %al: overflows where it is set
    0x9e,                                           // 47: sahf
    0x4c, 0x8b, 0x3c, 0x24,                         // 48: mov (%rsp), %r15
    0x4c, 0x8b, 0x5c, 0x24, 0x30,                   // 52: r11
    0x4c, 0x8b, 0x54, 0x24, 0x38,                   // 57: r10
    0x4c, 0x8b, 0x4c, 0x24, 0x40,                   // 62: r9
    0x4c, 0x8b, 0x44, 0x24, 0x48,                   // 67: r8
    0x48, 0x8b, 0x4c, 0x24, 0x58,                   // 72: rcx
    0x48, 0x8b, 0x74, 0x24, 0x68,                   // 77: rsi
    0x48, 0x8b, 0x7c, 0x24, 0x70,                   // 82: rdi
    0x48, 0x8d, 0xa4, 0x24, 0xa8,                   // 87: lea 168(%rsp), %rsp
    0x00, 0x00, 0x00,                               //
    0xc3,                                           // 95: ret
    0xcc,                                           // 96: the bell
    0xeb, 0xbe,                                     // 97: jmp 33, where no tracer has heard it
};
constexpr std::size_t call_at = 9, is_stored = 27, adds = 29, stack_is_back = 95, bell_at = 96;
static_assert(offsetof(X86_64Registers, flags) == 0x90 && offsetof(X86_64Registers, di) == 0x70);

constexpr std::size_t pushes_size() {
    std::size_t size = 0;
    for (const Step &each : pushes) size += each.size;
    return size;
}

constexpr std::size_t size = (pushes_size() + sizeof behind_pushes + 15) & ~std::size_t{15};

/// Bytes that were pushed before the instruction at an offset.
std::uint64_t pushed_at(std::uint64_t offset) {
    std::uint64_t pushed = 0;
    for (std::size_t i = 0; i < std::size(pushes); i++) {
        if (offset == 0) break;
        offset -= std::min<std::uint64_t>(offset, pushes[i].size);
        if (i != lea_is) pushed += 8;
    }
    return pushed;
}

bool read_registers(X86_64Registers &registers, Memory &memory, std::uint64_t frame) {
    std::byte bytes[frame_size];
    if (memory.read(VirtAddr{frame}, bytes) != frame_size) return false;
    const auto [ip, cs, orig_ax, ss] = std::array{registers.ip, registers.cs, registers.orig_ax, registers.ss};
    std::memcpy(static_cast<void *>(&registers), bytes, frame_size);
    registers.ip = ip;
    registers.cs = cs;
    registers.orig_ax = orig_ax;
    registers.ss = ss;
    return true;
}

} // namespace

AgentEntry X86_64Detour::agent_entry() {
    AgentEntry entry;
    auto add = [&](std::uint8_t each) { entry.bytes.push_back(static_cast<std::byte>(each)); };
    for (const Step &each : pushes)
        for (std::size_t i = 0; i < each.size; i++) add(each.bytes[i]);
    for (std::uint8_t each : behind_pushes) add(each);
    const auto distance = static_cast<std::int32_t>(size - pushes_size() - call_at - 5);
    std::memcpy(entry.bytes.data() + pushes_size() + call_at + 1, &distance, sizeof distance);
    entry.bell = pushes_size() + bell_at;
    while (entry.bytes.size() < size) add(0xcc);
    return entry;
}

std::optional<OutOfAgent> X86_64Detour::leave_agent(std::uint64_t offset, Registers &registers, Memory &memory) {
    const bool has_frame = offset >= pushes_size();
    const std::uint64_t behind = offset - pushes_size();
    const bool is_in_entry = offset < size, is_back = is_in_entry && has_frame && behind == stack_is_back;
    OutOfAgent out;
    out.has_effect = is_in_entry && has_frame && behind != adds && behind >= is_stored && behind < bell_at;
    std::uint64_t bottom = registers.sp; // where the return address into the stub lies
    if (has_frame && !is_back) {
        const std::uint64_t frame = is_in_entry ? registers.sp : registers.r15;
        if (!read_registers(registers, memory, frame)) return std::nullopt;
        bottom = frame + frame_size;
    } else {
        if (!is_back) bottom += pushed_at(offset);
        std::uint64_t kept[2];
        if (memory.read(VirtAddr{bottom + 8}, std::as_writable_bytes(std::span(kept))) != sizeof kept)
            return std::nullopt;
        registers.ax = kept[0];
        registers.dx = kept[1];
        registers.sp = bottom + 8 + agent_stub_lowers_by;
    }
    const auto in_stub = memory.read_value<std::uint64_t>(VirtAddr{bottom});
    if (!in_stub) return std::nullopt;
    out.in_stub = VirtAddr{*in_stub};
    return out;
}

} // namespace ktrace::arch
