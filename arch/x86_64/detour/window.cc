// Window: which instructions a jump displaces, where threads may start to execute in it, and what its distance must be
// made of.
//
// A boundary lies behind a `lock` prefix, too: C libraries jump over it. A jump to the middle of an instruction
// otherwise leaves no window: there would be no copy to go on at. Behind an instruction that control does not pass lies
// code only where a branch leads, or padding; anything else may be data, which must not change.
#include <algorithm>

#include "x86_64/detour/detour.h"
#include "x86_64/probeable.h"
#include "x86_64/x86_64.h"

namespace ktrace::arch {

namespace {

using x86::Insn;
using x86::Kind;

constexpr std::uint8_t int3 = 0xcc, first_opcode_of_jump = 0xe9;

ByteSet set_of(std::initializer_list<std::uint8_t> bytes) {
    ByteSet set;
    for (std::uint8_t each : bytes) set.set(each);
    return set;
}

/// Why an instruction may not be displaced at all.
std::optional<NoJump> refusal_of(const X86_64Plan &plan, VirtAddr at, bool shadow_stack) {
    switch (plan.insn.kind) {
    case Kind::syscall:
    case Kind::syscall32:
    case Kind::sysenter: return NoJump::system_call;
    case Kind::breakpoint: return NoJump::breakpoint;
    case Kind::undefined: return NoJump::undefined;
    case Kind::transaction: return NoJump::transaction;
    case Kind::pop_flags: return NoJump::trap_flag;
    default: break;
    }
    if (plan.method == Method::refuse) return NoJump::unmovable;
    if (plan.flow != Flow::call) return std::nullopt;
    if (shadow_stack) return NoJump::call_with_shadow_stack;
    const bool movable = X86_64::place(plan, at, at).size != 0;
    return movable ? std::nullopt : std::optional(NoJump::unmovable);
}

/// Collects a window instruction by instruction.
class Collector {
  public:
    explicit Collector(const DetourSite &site) : site_(site) {}

    tl::expected<Window, NoJump> collect() {
        while (size_ < X86_64Detour::jump_size)
            if (const auto refusal = add_next()) return tl::unexpected(*refusal);
        window_.length = static_cast<std::uint8_t>(size_);
        if (has_target_elsewhere()) return tl::unexpected(NoJump::branch_into_middle);
        return window_;
    }

  private:
    std::optional<NoJump> add_next() {
        const VirtAddr at = site_.at + static_cast<std::int64_t>(size_);
        const auto code = site_.code.subspan(std::min(size_, site_.code.size()));
        const bool outside = at >= site_.function_end;
        if (size_ != 0 && is_one_of(site_.sites, at)) return NoJump::other_site;
        if (is_target(at)) passed_ = true;
        if (!code.empty() && code[0] == std::byte{int3} && (outside || !passed_)) return add_int3(at);

        const X86_64Plan plan = X86_64::plan(code, at);
        if (plan.length == 0) return outside ? NoJump::function_ends : NoJump::no_instruction;
        const VirtAddr end = at + plan.length;
        if (outside ? !plan.insn.does_nothing || end > site_.padding_end : end > site_.function_end)
            return NoJump::function_ends;
        if (!passed_ && !plan.insn.does_nothing) return NoJump::maybe_data;
        if (const auto refusal = refusal_of(plan, at, site_.shadow_stack)) return refusal;
        return add(plan);
    }

    std::optional<NoJump> add(const X86_64Plan &plan) {
        if (size_ != 0) add_boundary(size_, false);
        window_.starts.push_back(static_cast<std::uint8_t>(size_));
        if (plan.insn.behind_lock != 0) add_boundary(size_ + plan.insn.behind_lock, false);
        size_ += plan.length;
        if (plan.flow == Flow::call && size_ < X86_64Detour::jump_size) return NoJump::call_not_last;
        passed_ = passed_ && x86::falls_through(plan.insn.kind);
        return std::nullopt;
    }

    /// An int3 that control does not come to.
    std::optional<NoJump> add_int3(VirtAddr at) {
        if (size_ == 0) return NoJump::breakpoint;
        if (at >= site_.function_end && at >= site_.padding_end) return NoJump::function_ends;
        add_boundary(size_, true);
        size_ += 1;
        passed_ = false;
        return std::nullopt;
    }

    void add_boundary(std::size_t offset, bool stays) {
        if (offset >= X86_64Detour::jump_size) return;
        const bool target = is_target(site_.at + static_cast<std::int64_t>(offset));
        window_.inner.push_back({static_cast<std::uint8_t>(offset), target, stays});
    }

    /// Does a branch lead to a byte of the jump that is no boundary?
    bool has_target_elsewhere() const {
        for (std::uint8_t offset = 1; offset < X86_64Detour::jump_size; ++offset) {
            const bool known = std::any_of(window_.inner.begin(), window_.inner.end(),
                                           [offset](const Boundary &each) { return each.offset == offset; });
            if (!known && is_target(site_.at + offset)) return true;
        }
        return false;
    }

    static bool is_one_of(std::span<const VirtAddr> places, VirtAddr at) {
        return std::binary_search(places.begin(), places.end(), at);
    }
    bool is_target(VirtAddr at) const { return is_one_of(site_.targets, at); }

    const DetourSite &site_;
    Window window_;
    std::size_t size_ = 0;
    bool passed_ = true; // control comes from the instruction before, or by a branch
};

} // namespace

const ByteSet &X86_64Detour::trap_byte() {
    static const ByteSet set = set_of({int3});
    return set;
}

const ByteSet &X86_64Detour::illegal_bytes() {
    // Not: prefixes (62, c4, c5, d5), privileged instructions (fa, fb, f4), and those that take more bytes (82, 9a, d4,
    // ea).
    static const ByteSet set =
        set_of({0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0xce, 0xd6});
    return set;
}

std::vector<VirtAddr> X86_64Detour::targets(std::span<const std::byte> function, VirtAddr at) {
    x86::Reached reached(function);
    reached.reach_the_rest();
    std::vector<VirtAddr> targets;
    for (std::size_t offset : reached.targets()) targets.push_back(at + static_cast<std::int64_t>(offset));
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    return targets;
}

tl::expected<Window, NoJump> X86_64Detour::window(const DetourSite &site) { return Collector(site).collect(); }

LandingRule X86_64Detour::landing_rule(const Window &window, VirtAddr site, const TrapBytes &traps) {
    LandingRule rule;
    rule.from = site + static_cast<std::int64_t>(jump_size);
    for (ByteSet &each : rule.distance) each.set();
    for (const Boundary &each : window.inner)
        rule.distance[each.offset - 1u] = each.stays ? trap_byte() : each.target ? traps.at_targets : traps.anywhere;
    return rule;
}

std::optional<std::vector<std::byte>> X86_64Detour::jump(VirtAddr from, VirtAddr to) {
    const std::int64_t distance = to - (from + static_cast<std::int64_t>(jump_size));
    if (distance != static_cast<std::int32_t>(distance)) return std::nullopt;
    std::vector<std::byte> bytes{std::byte{first_opcode_of_jump}};
    for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(distance >> 8 * i));
    return bytes;
}

} // namespace ktrace::arch
