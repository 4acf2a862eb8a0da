// arm64's answers to isa_detour.h. An instruction is as long as a branch, so a window is one instruction, without inner
// boundaries, and the jump leads to its stub itself. Files: window.cc, copies.cc, stub.cc, agent_entry.cc,
// rehearsal_code.cc.
#pragma once

#include "arm64/insn.h"
#include "arm64/registers.h"
#include "isa_detour.h"

namespace ktrace::arch {

struct Arm64Detour {
    using Registers = Arm64Registers;

    static constexpr std::size_t jump_size = a64_size;
    static constexpr std::size_t longest_window = a64_size;
    static constexpr bool lands_in_stub = true;

    static const ByteSet &trap_byte(); // none: no byte is an instruction
    static const ByteSet &illegal_bytes() { return trap_byte(); }
    static std::vector<VirtAddr> targets(std::span<const std::byte>, VirtAddr) { return {}; } // they do not matter
    static bool is_landing_pad(std::span<const std::byte> code);
    static tl::expected<Window, NoJump> window(const DetourSite &site);
    static LandingRule landing_rule(const Window &, VirtAddr site, const TrapBytes &) { return {site, {}}; }
    static tl::expected<Copies, NoJump> copy(const Window &window, std::span<const std::byte> code, VirtAddr site,
                                             VirtAddr to);
    static std::optional<std::vector<std::byte>> jump(VirtAddr from, VirtAddr to);
    static tl::expected<Stub, NoJump> counting_stub(const Window &window, std::span<const std::byte> code,
                                                    VirtAddr site, VirtAddr to, VirtAddr counter);
    static tl::expected<Stub, NoJump> agent_stub(const Window &window, std::span<const std::byte> code, VirtAddr site,
                                                 VirtAddr to, VirtAddr handed_on);
    static constexpr std::size_t agent_sees = 33 * 8; // up to pc
    static AgentEntry agent_entry();
    static RehearsalCode rehearsal_code();
    static void come_again(Registers &) {} // the processor has no flag for it
    static bool is_thread_pointer(VirtAddr pointer, Memory &) { return pointer.value != 0; }
    static std::optional<OutOfAgent> leave_agent(std::uint64_t offset, Registers &registers, Memory &memory);
    static OutOfStub leave(const Stub &stub, VirtAddr site, VirtAddr at, Registers &registers,
                           std::span<const std::byte> saved);
};

static_assert(Detour<Arm64Detour>);

} // namespace ktrace::arch
