#include "way_back.h"

namespace ktrace::arch {

// Nothing leads back by itself on this machine yet.
std::vector<std::byte> signal_frame(Tid, const Host::Registers &, std::uint64_t, VirtAddr) { return {}; }
std::optional<std::size_t> call_in_recovery_code() { return std::nullopt; }
std::span<const std::byte> call_and_return() { return {}; }
std::vector<SignalFrame> signal_frames(VirtAddr, VirtAddr, Memory &) { return {}; }
void set_stack_pointer(Host::Registers &, VirtAddr) {}

// struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo, struct ucontext with room for 1,024 signals, and in it, on
// a multiple of 16, struct sigcontext: the fault's address, x0 to x30, sp, pc.
std::optional<SignalReturn> signal_return(const Host::Registers &registers, Memory &memory) {
    constexpr std::int64_t info = 128, context = info + 8 + 8 + 24 + 128 + 8, sp_at = context + 8 + 31 * 8;
    const auto sp = memory.read_value<std::uint64_t>(Host::sp(registers) + sp_at);
    const auto pc = memory.read_value<std::uint64_t>(Host::sp(registers) + (sp_at + 8));
    if (!sp || !pc) return std::nullopt;
    return SignalReturn{VirtAddr{*pc}, VirtAddr{*sp}};
}

bool awaits_restart(const Host::Registers &) { return false; } // the registers do not show it

} // namespace ktrace::arch
