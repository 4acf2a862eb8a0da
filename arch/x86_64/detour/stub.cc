// Stub: counts a hit, or calls the agent, then runs the copies. Registers that it needs, and the flags, are kept below
// the red zone:
//
//     lea -152(%rsp), %rsp | mov %rax, (%rsp) | mov %rcx, 8(%rsp) | mov %rdx, 16(%rsp)
//     lahf | seto %al                                  the flags but for those that nothing here changes
//     mov %rsp, %rcx | shr 14 | imul, shr 28, shl 16   the row: 16 KiB of stack share one, neighbours have others
//     lea counter(%rip), %rdx | lock incq (%rdx,%rcx)
//     add $0x7f, %al | sahf                            overflow is al's lowest bit, the others lie in ah
//     mov 16(%rsp), %rdx | mov 8(%rsp), %rcx | mov (%rsp), %rax | lea 152(%rsp), %rsp
//
// and, for the agent's entry (agent_entry.cc), which keeps the rest:
//
//     lea -144(%rsp), %rsp | mov %rax, (%rsp) | mov %rdx, 8(%rsp) | mov handed on, %rdx | call *(%rdx)
//     mov 8(%rsp), %rdx | mov (%rsp), %rax | lea 144(%rsp), %rsp
//
// popf would take as long as all of that. A thread is taken out of it as if it had never come: back to the site, with
// its registers as they were.
#include <cstring>
#include <utility>

#include "base/check.h"
#include "x86_64/detour/agent_stack.h"
#include "x86_64/detour/detour.h"

namespace ktrace::arch {

namespace {

constexpr std::uint8_t head[] = {
    0x48, 0x8d, 0xa4, 0x24, 0x68, 0xff, 0xff, 0xff, // 0
    0x48, 0x89, 0x04, 0x24,                         // 8
    0x48, 0x89, 0x4c, 0x24, 0x08,                   // 12
    0x48, 0x89, 0x54, 0x24, 0x10,                   // 17
    0x9f,                                           // 22
    0x0f, 0x90, 0xc0,                               // 23
    0x48, 0x89, 0xe1,                               // 26
    0x48, 0xc1, 0xe9, 0x0e,                         // 29
    0x69, 0xc9, 0xb1, 0x79, 0x37, 0x9e,             // 33
    0xc1, 0xe9, 0x1c,                               // 39
    0xc1, 0xe1, 0x10,                               // 42
    0x48, 0x8d, 0x15, 0x00, 0x00, 0x00, 0x00,       // 45: the distance to the counter
    0xf0, 0x48, 0xff, 0x04, 0x0a,                   // 52
    0x04, 0x7f,                                     // 57
    0x9e,                                           // 59
    0x48, 0x8b, 0x54, 0x24, 0x10,                   // 60
    0x48, 0x8b, 0x4c, 0x24, 0x08,                   // 65
    0x48, 0x8b, 0x04, 0x24,                         // 70
    0x48, 0x8d, 0xa4, 0x24, 0x98, 0x00, 0x00, 0x00, // 74
};
// From the stub's start: what is true of a thread whose pc is there, or behind it.
constexpr std::uint64_t stack_is_lower = 8, all_are_kept = 22, flags_are_kept = 26, counter_at = 48,
                        behind_counter = 52, is_counted = 57, overflow_is_back = 59, flags_are_back = 60,
                        stack_is_back = sizeof head;
constexpr std::uint64_t lowered_by = 152;
static_assert(counter_rows == 16 && counter_row_size == 1 << 16, "as the shifts above have it");

constexpr std::uint64_t overflow = 0x800, in_ah = 0xd5; // flags: of sahf, sign, zero, auxiliary, parity, carry

constexpr std::uint8_t agent_head[] = {
    0x48, 0x8d, 0xa4, 0x24, 0x70, 0xff, 0xff, 0xff,       // 0
    0x48, 0x89, 0x04, 0x24,                               // 8
    0x48, 0x89, 0x54, 0x24, 0x08,                         // 12
    0x48, 0xba, 0,    0,    0,    0,    0,    0,    0, 0, // 17: what is handed on
    0xff, 0x12,                                           // 27
    0x48, 0x8b, 0x54, 0x24, 0x08,                         // 29
    0x48, 0x8b, 0x04, 0x24,                               // 34
    0x48, 0x8d, 0xa4, 0x24, 0x90, 0x00, 0x00, 0x00,       // 38
};
constexpr std::uint64_t handed_on_at = 19, both_are_kept = 17, is_called = 29, agent_stack_is_back = sizeof agent_head;

std::uint64_t word(std::span<const std::byte> saved, std::size_t at) {
    std::uint64_t value = 0;
    KT_CHECK(saved.size() >= at + sizeof value);
    std::memcpy(&value, saved.data() + at, sizeof value);
    return value;
}

/// The program's flags, of a thread at `offset` of the head.
std::uint64_t flags_at(std::uint64_t offset, const X86_64Registers &now) {
    if (offset < flags_are_kept || offset >= flags_are_back) return now.flags;
    const std::uint64_t others = (now.flags & ~in_ah) | (now.ax >> 8 & in_ah);
    if (offset >= overflow_is_back) return others;
    return (others & ~overflow) | ((now.ax & 1) != 0 ? overflow : 0);
}

void leave_head(std::uint64_t offset, X86_64Registers &registers, std::span<const std::byte> saved) {
    if (offset < stack_is_lower) return;
    registers.flags = flags_at(offset, registers);
    if (offset >= all_are_kept) {
        registers.ax = word(saved, 0);
        registers.cx = word(saved, 8);
        registers.dx = word(saved, 16);
    }
    registers.sp += lowered_by;
}

/// True where the agent has returned: its answer was carried out.
bool leave_agent_head(std::uint64_t offset, X86_64Registers &registers, std::span<const std::byte> saved) {
    if (offset < stack_is_lower) return false;
    if (offset > both_are_kept) {
        registers.ax = word(saved, 0);
        registers.dx = word(saved, 8);
    }
    registers.sp += agent_stub_lowers_by;
    return offset >= is_called;
}

Stub stub_of(std::span<const std::uint8_t> before, Copies copies) {
    Stub stub;
    for (std::uint8_t each : before) stub.bytes.push_back(static_cast<std::byte>(each));
    stub.copies_at = static_cast<std::uint8_t>(stub.bytes.size());
    stub.bytes.insert(stub.bytes.end(), copies.bytes.begin(), copies.bytes.end());
    stub.copies = std::move(copies);
    return stub;
}

} // namespace

tl::expected<Stub, NoJump> X86_64Detour::agent_stub(const Window &window, std::span<const std::byte> code,
                                                    VirtAddr site, VirtAddr to, VirtAddr handed_on) {
    auto copies = copy(window, code, site, to + static_cast<std::int64_t>(sizeof agent_head));
    if (!copies) return tl::unexpected(copies.error());
    Stub stub = stub_of(agent_head, std::move(*copies));
    stub.calls_agent = true;
    std::memcpy(stub.bytes.data() + handed_on_at, &handed_on.value, sizeof handed_on.value);
    return stub;
}

tl::expected<Stub, NoJump> X86_64Detour::counting_stub(const Window &window, std::span<const std::byte> code,
                                                       VirtAddr site, VirtAddr to, VirtAddr counter) {
    const std::int64_t distance = counter - (to + static_cast<std::int64_t>(behind_counter));
    const auto copies_at = to + static_cast<std::int64_t>(sizeof head);
    if (distance != static_cast<std::int32_t>(distance)) return tl::unexpected(NoJump::out_of_reach);
    auto copies = copy(window, code, site, copies_at);
    if (!copies) return tl::unexpected(copies.error());
    Stub stub = stub_of(head, std::move(*copies));
    const auto field = static_cast<std::int32_t>(distance);
    std::memcpy(stub.bytes.data() + counter_at, &field, sizeof field);
    return stub;
}

OutOfStub X86_64Detour::leave(const Stub &stub, VirtAddr site, VirtAddr at, Registers &registers,
                              std::span<const std::byte> saved) {
    const std::uint64_t offset = registers.ip - at.value;
    OutOfStub out{site, offset >= is_counted};
    if (stub.calls_agent && offset < agent_stack_is_back) {
        out.is_undone = leave_agent_head(offset, registers, saved);
    } else if (!stub.calls_agent && offset < stack_is_back) {
        leave_head(offset, registers, saved);
    } else {
        for (const Copies::Shown &shown : stub.copies.shown) {
            if (stub.copies_at + shown.at != offset) continue;
            out = {shown.pc, shown.pc == site && (shown.at == 0 || shown.pushed != 0)};
            registers.sp += shown.pushed;
        }
    }
    registers.ip = out.pc.value;
    return out;
}

} // namespace ktrace::arch
