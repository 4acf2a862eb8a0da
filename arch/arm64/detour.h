// arm64's answers to isa_detour.h: not built yet. (One instruction is as long as a branch, so a window will be one
// instruction without inner boundaries.)
#pragma once

#include "arm64/registers.h"
#include "isa_detour.h"

namespace ktrace::arch {

struct Arm64Detour {
    using Registers = Arm64Registers;

    static constexpr std::size_t jump_size = 4;
    static constexpr std::size_t longest_window = 4;

    static const ByteSet &trap_byte();
    static const ByteSet &illegal_bytes() { return trap_byte(); }
    static std::vector<VirtAddr> targets(std::span<const std::byte>, VirtAddr) { return {}; }
    static tl::expected<Window, NoJump> window(const DetourSite &) { return tl::unexpected(NoJump::not_built); }
    static LandingRule landing_rule(const Window &, VirtAddr site, const TrapBytes &) { return {site, {}}; }
    static tl::expected<Copies, NoJump> copy(const Window &, std::span<const std::byte>, VirtAddr, VirtAddr) {
        return tl::unexpected(NoJump::not_built);
    }
    static std::optional<std::vector<std::byte>> jump(VirtAddr, VirtAddr) { return std::nullopt; }
    static tl::expected<Stub, NoJump> counting_stub(const Window &, std::span<const std::byte>, VirtAddr, VirtAddr,
                                                    VirtAddr) {
        return tl::unexpected(NoJump::not_built);
    }
    static tl::expected<Stub, NoJump> agent_stub(const Window &, std::span<const std::byte>, VirtAddr, VirtAddr,
                                                 VirtAddr) {
        return tl::unexpected(NoJump::not_built);
    }
    static constexpr std::size_t agent_sees = 0;
    static AgentEntry agent_entry() { return {}; }
    static RehearsalCode rehearsal_code() { return {}; }
    static void come_again(Registers &) {}
    static std::optional<OutOfAgent> leave_agent(std::uint64_t, Registers &, Memory &) { return std::nullopt; }
    static OutOfStub leave(const Stub &, VirtAddr site, VirtAddr, Registers &, std::span<const std::byte>) {
        return {site, false};
    }
};

static_assert(Detour<Arm64Detour>);

} // namespace ktrace::arch
