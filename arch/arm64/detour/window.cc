// Window: one instruction. Which ones have no copy is said by copies.cc, too.
#include "arm64/arm64.h"
#include "arm64/detour/detour.h"
#include "arm64/words.h"

namespace ktrace::arch {

namespace {

/// Why an instruction may not be displaced at all.
std::optional<NoJump> refusal_of(const Arm64Plan &plan, bool shadow_stack) {
    switch (plan.form) {
    case A64Form::svc: return NoJump::system_call;
    case A64Form::breakpoint: return NoJump::breakpoint;
    case A64Form::undefined: return NoJump::undefined;
    case A64Form::transaction: return NoJump::transaction;
    default: break;
    }
    if (plan.method == Method::refuse) return NoJump::unmovable;
    if (plan.flow == Flow::call && shadow_stack) return NoJump::call_with_shadow_stack;
    return std::nullopt;
}

} // namespace

const ByteSet &Arm64Detour::trap_byte() {
    static const ByteSet none;
    return none;
}

/// bti, paciasp, pacibsp: hints that an indirect branch may lead to. `brk` may be in their place, a branch may not
/// (Arm ARM, D8.4.4).
bool Arm64Detour::is_landing_pad(std::span<const std::byte> code) {
    if (code.size() < a64_size) return false;
    constexpr std::uint32_t bti = 0xd503241f, any_target = 0xc0, paciasp = 0xd503233f, pacibsp = 0xd503237f;
    const std::uint32_t word = a64_word(code);
    return (word & ~any_target) == bti || word == paciasp || word == pacibsp;
}

tl::expected<Window, NoJump> Arm64Detour::window(const DetourSite &site) {
    if (site.code.size() < a64_size) return tl::unexpected(NoJump::no_instruction);
    if (site.function_end < site.at + static_cast<std::int64_t>(a64_size)) return tl::unexpected(NoJump::function_ends);
    const Arm64Plan plan = Arm64::plan(site.code, site.at);
    if (plan.length == 0) return tl::unexpected(NoJump::no_instruction);
    if (const auto refusal = refusal_of(plan, site.shadow_stack)) return tl::unexpected(*refusal);
    if (site.is_guarded && is_landing_pad(site.code)) return tl::unexpected(NoJump::landing_pad);
    Window window;
    window.length = a64_size;
    window.starts = {0};
    return window;
}

std::optional<std::vector<std::byte>> Arm64Detour::jump(VirtAddr from, VirtAddr to) {
    const auto word = a64_make_branch(to - from);
    if (!word) return std::nullopt;
    const auto bytes = a64_bytes(*word);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
}

} // namespace ktrace::arch
