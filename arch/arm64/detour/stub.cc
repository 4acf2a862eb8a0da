// Stub: counts or calls the agent, then runs the copies. Two registers are kept below the stack pointer, where AAPCS64
// has nothing of the program's; no flag changes:
//
//     stp x16, x17, [sp, #-16]!
//     mov x16, sp | lsr 14 | mul, lsr 28       the row: 16 KiB of stack share one, neighbours have others
//     ldr x17, counter | add x16, x17, x16, lsl 16 | mov w17, #1 | stadd x17, [x16]
//     ldp x16, x17, [sp], #16
//
// and, for the agent's entry (agent_entry.cc), which keeps the rest:
//
//     stp x16, x30, [sp, #-16]! | ldr x16, handed on | ldr x30, [x16] | blr x30 | ldp x16, x30, [sp], #16
//
// The literal lies behind the copies. A thread is taken out of it as if it had never come: back to the site, with its
// registers as they were.
#include <cstring>
#include <iterator>
#include <utility>

#include "arm64/detour/agent_stack.h"
#include "arm64/detour/detour.h"
#include "arm64/words.h"
#include "base/check.h"

namespace ktrace::arch {

namespace {

constexpr std::uint32_t head[] = {
    0xa9bf47f0, // 0: stp x16, x17, [sp, #-16]!
    0x910003f0, // 4: mov x16, sp
    0xd34efe10, // 8: lsr x16, x16, #14
    0x528f3631, // 12: movz w17, #0x79b1
    0x72b3c6f1, // 16: movk w17, #0x9e37, lsl #16
    0x1b117e10, // 20: mul w16, w16, w17
    0x531c7e10, // 24: lsr w16, w16, #28
    0x58000011, // 28: ldr x17, the counter's address
    0x8b104230, // 32: add x16, x17, x16, lsl #16
    0x52800031, // 36: mov w17, #1
    0xf831021f, // 40: stadd x17, [x16]
    0xa8c147f0, // 44: ldp x16, x17, [sp], #16
};
constexpr std::size_t counter_load_at = 28;
constexpr std::uint64_t is_counted = 44, stack_is_back = sizeof head;
static_assert(counter_rows == 16 && counter_row_size == 1 << 16, "as the shifts above have it");

constexpr std::uint32_t agent_head[] = {
    0xa9bf7bf0, // 0: stp x16, x30, [sp, #-16]!
    0x58000010, // 4: ldr x16, what is handed on
    0xf940021e, // 8: ldr x30, [x16]
    0xd63f03c0, // 12: blr x30
    0xa8c17bf0, // 16: ldp x16, x30, [sp], #16
};
constexpr std::size_t handed_on_load_at = 4;
constexpr std::uint64_t is_called = 16, agent_stack_is_back = sizeof agent_head;
static_assert(kept_by_stub == 16 && kept_by_stub <= saved_by_stub);

constexpr std::uint64_t btype_mask = 3u << 10, btype_call = 2u << 10; // of pstate
constexpr std::uint32_t branch_register = 0xd61f0000, register_mask = 0x1f << 5;

std::uint64_t word(std::span<const std::byte> saved, std::size_t at) {
    std::uint64_t value = 0;
    KT_CHECK(saved.size() >= at + sizeof value);
    std::memcpy(&value, saved.data() + at, sizeof value);
    return value;
}

tl::expected<Stub, NoJump> stub_of(std::span<const std::uint32_t> before, std::size_t load_at, VirtAddr literal,
                                   const Window &window, std::span<const std::byte> code, VirtAddr site, VirtAddr to) {
    auto copies = Arm64Detour::copy(window, code, site, to + static_cast<std::int64_t>(before.size_bytes()));
    if (!copies) return tl::unexpected(copies.error());
    Stub stub;
    auto add = [&](std::span<const std::byte> bytes) {
        stub.bytes.insert(stub.bytes.end(), bytes.begin(), bytes.end());
    };
    const std::size_t copies_end = before.size_bytes() + copies->bytes.size();
    const std::size_t literal_at = (copies_end + sizeof literal.value - 1) & ~(sizeof literal.value - 1);
    for (std::size_t i = 0; i < before.size(); i++)
        add(a64_bytes(i * a64_size != load_at
                          ? before[i]
                          : *a64_retarget_literal(before[i], static_cast<std::int64_t>(literal_at - load_at))));
    stub.copies_at = static_cast<std::uint8_t>(stub.bytes.size());
    add(copies->bytes);
    stub.bytes.resize(literal_at);
    add(std::as_bytes(std::span(&literal.value, 1)));
    stub.copies = std::move(*copies);
    return stub;
}

/// The copy of a call has set x30 already: the call is carried out.
OutOfStub call_through(std::uint32_t branch, Arm64Registers &registers) {
    const std::uint64_t to = registers.x[a64_field(branch, 5, 5)];
    constexpr std::uint64_t tag = std::uint64_t{0xff} << 56; // is no part of an address
    registers.pstate = (registers.pstate & ~btype_mask) | btype_call;
    return {VirtAddr{(to >> 55 & 1) != 0 ? to | tag : to & ~tag}, false};
}

} // namespace

tl::expected<Stub, NoJump> Arm64Detour::counting_stub(const Window &window, std::span<const std::byte> code,
                                                      VirtAddr site, VirtAddr to, VirtAddr counter) {
    return stub_of(head, counter_load_at, counter, window, code, site, to);
}

tl::expected<Stub, NoJump> Arm64Detour::agent_stub(const Window &window, std::span<const std::byte> code, VirtAddr site,
                                                   VirtAddr to, VirtAddr handed_on) {
    auto stub = stub_of(agent_head, handed_on_load_at, handed_on, window, code, site, to);
    if (stub) stub->calls_agent = true;
    return stub;
}

OutOfStub Arm64Detour::leave(const Stub &stub, VirtAddr site, VirtAddr at, Registers &registers,
                             std::span<const std::byte> saved) {
    const std::uint64_t offset = registers.pc - at.value;
    const bool is_in_head = offset < (stub.calls_agent ? agent_stack_is_back : stack_is_back);
    OutOfStub out{site, is_in_head && offset >= (stub.calls_agent ? is_called : is_counted)};
    if (is_in_head && offset != 0) {
        registers.x[16] = word(saved, 0);
        registers.x[stub.calls_agent ? 30 : 17] = word(saved, 8);
        registers.sp += kept_by_stub;
    }
    for (const Copies::Shown &shown : stub.copies.shown) {
        if (stub.copies_at + shown.at != offset) continue;
        const std::uint32_t instruction = a64_word(stub.bytes, offset);
        const bool is_in_call = shown.at != 0 && (instruction & ~register_mask) == branch_register;
        out = is_in_call ? call_through(instruction, registers) : OutOfStub{shown.pc, shown.at == 0};
    }
    registers.pc = out.pc.value;
    return out;
}

} // namespace ktrace::arch
