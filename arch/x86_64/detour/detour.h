// x86-64's answers to isa_detour.h. `jmp rel32` takes five bytes and instructions are shorter, so the distance is
// chosen so that its bytes on inner boundaries are traps (instruction punning). Files: window.cc, copies.cc, stub.cc,
// agent_entry.cc.
#pragma once

#include "isa_detour.h"
#include "x86_64/registers.h"

namespace ktrace::arch {

struct X86_64Detour {
    using Registers = X86_64Registers;

    static constexpr std::size_t jump_size = 5;
    static constexpr std::size_t longest_window = jump_size - 1 + 15;
    static constexpr bool lands_in_stub = false;

    static const ByteSet &trap_byte();
    /// Opcodes of one byte that are invalid in 64-bit mode.
    static const ByteSet &illegal_bytes();
    static std::vector<VirtAddr> targets(std::span<const std::byte> function, VirtAddr at);
    static bool is_landing_pad(std::span<const std::byte>) { return false; } // it is of no use without a jump behind it
    static tl::expected<Window, NoJump> window(const DetourSite &site);
    static LandingRule landing_rule(const Window &window, VirtAddr site, const TrapBytes &traps);
    static tl::expected<Copies, NoJump> copy(const Window &window, std::span<const std::byte> code, VirtAddr site,
                                             VirtAddr to);
    static std::optional<std::vector<std::byte>> jump(VirtAddr from, VirtAddr to);
    static tl::expected<Stub, NoJump> counting_stub(const Window &window, std::span<const std::byte> code,
                                                    VirtAddr site, VirtAddr to, VirtAddr counter);
    static tl::expected<Stub, NoJump> agent_stub(const Window &window, std::span<const std::byte> code, VirtAddr site,
                                                 VirtAddr to, VirtAddr handed_on);
    static constexpr std::size_t agent_sees = 21 * 8; // up to ss
    static AgentEntry agent_entry();
    static RehearsalCode rehearsal_code();
    /// The resume flag: Intel SDM vol. 3, 18.3.1.1.
    static void come_again(Registers &registers) { registers.flags |= 1U << 16; }
    /// It points to itself (psABI, thread-local storage): the agent reads it there.
    static bool is_thread_pointer(VirtAddr pointer, Memory &memory) {
        return memory.read_value<std::uint64_t>(pointer) == pointer.value;
    }
    static std::optional<OutOfAgent> leave_agent(std::uint64_t offset, Registers &registers, Memory &memory);
    static OutOfStub leave(const Stub &stub, VirtAddr site, VirtAddr at, Registers &registers,
                           std::span<const std::byte> saved);
};

static_assert(Detour<X86_64Detour>);

} // namespace ktrace::arch
