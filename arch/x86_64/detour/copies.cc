// Copies: the instructions of a window, one behind the other, for another place. An instruction that is copied into a
// slot is copied as it is there (place.cc); the others become
//
//     jmp target, jcc target    the same with rel32
//     jmp *register             itself
//     loop, jrcxz target        loop +2 | jmp +5 | jmp rel32 to the target
//
// and behind the last one a jump leads back, where control comes there. Each is entered at its first byte, or behind
// its `lock` prefix. A copy that does not reach its operand or its target is none: no register is free here.
#include <algorithm>

#include "base/check.h"
#include "x86_64/detour/detour.h"
#include "x86_64/probeable.h"
#include "x86_64/x86_64.h"

namespace ktrace::arch {

namespace {

using x86::Insn;
using x86::Kind;
using Plan = X86_64Plan;

class Copier {
  public:
    Copier(VirtAddr site, VirtAddr to) : site_(site), to_(to) {}

    tl::expected<Copies, NoJump> copy(const Window &window, std::span<const std::byte> code) {
        KT_CHECK(code.size() >= window.length);
        bool passes = false; // does control pass the instruction before?
        std::size_t end = 0; // of that
        for (std::uint8_t start : window.starts) {
            if (passes && start != end) jump(at(end), at(end)); // an int3 that stays
            const Plan plan = X86_64::plan(code.subspan(start, window.length - start), at(start));
            add_entries(window, start, plan);
            add(plan, at(start));
            passes = x86::falls_through(plan.insn.kind) && plan.flow != Flow::call;
            end = start + plan.length;
        }
        if (passes) jump(at(end), at(end));
        if (!reaches_) return tl::unexpected(NoJump::out_of_reach);
        return copies_;
    }

  private:
    VirtAddr at(std::size_t offset) const { return site_ + static_cast<std::int64_t>(offset); }
    VirtAddr here() const { return to_ + static_cast<std::int64_t>(copies_.bytes.size()); }

    void bytes(std::initializer_list<unsigned> all) {
        for (unsigned each : all) copies_.bytes.push_back(static_cast<std::byte>(each));
    }
    void bytes(std::span<const std::byte> all) { copies_.bytes.insert(copies_.bytes.end(), all.begin(), all.end()); }
    /// The distance from behind itself.
    void distance_to(VirtAddr target) {
        const std::int64_t distance = target - (here() + 4);
        reaches_ = reaches_ && distance == static_cast<std::int32_t>(distance);
        for (unsigned i = 0; i < 4; ++i) bytes({static_cast<unsigned>(distance >> 8 * i) & 0xff});
    }
    /// A pc `ahead` of the bytes so far shows as `pc`.
    void show_at(std::size_t ahead, VirtAddr pc, std::uint8_t pushed = 0) {
        copies_.shown.push_back({static_cast<std::uint8_t>(copies_.bytes.size() + ahead), pc, pushed});
    }
    void show(VirtAddr pc) { show_at(0, pc); }
    void jump(VirtAddr target, VirtAddr shown) {
        show(shown);
        bytes({0xe9});
        distance_to(target);
    }

    void add_entries(const Window &window, std::uint8_t start, const Plan &plan) {
        const std::size_t copy_at = copies_.bytes.size();
        auto add_entry = [&](std::size_t offset) {
            copies_.entries.push_back(
                {static_cast<std::uint8_t>(offset), static_cast<std::uint8_t>(copy_at + offset - start)});
        };
        if (start == 0) add_entry(0);
        for (const Boundary &each : window.inner)
            if (each.offset != 0 && each.offset >= start && each.offset < start + plan.length) add_entry(each.offset);
    }

    void add(const Plan &plan, VirtAddr from) {
        const Insn &insn = plan.insn;
        switch (insn.kind) {
        case Kind::jump:
            if (plan.target) return jump(*plan.target, from);
            if (insn.target_memory) return add_placed(plan, from);
            show(from);
            return bytes(std::span(plan.bytes).first(plan.length));
        case Kind::branch:
            show(from);
            bytes({0x0f, 0x80u | insn.condition});
            return distance_to(*plan.target);
        case Kind::loop:
        case Kind::loop_equal:
        case Kind::loop_not_equal:
        case Kind::branch_count_zero: return add_loop(plan, from);
        default: return add_placed(plan, from);
        }
    }

    void add_loop(const Plan &plan, VirtAddr from) {
        show(from);
        bytes(std::span(plan.bytes).first(plan.length - 1u)); // all but the distance
        bytes({2});
        show(from + plan.length);
        bytes({0xeb, 5});
        jump(*plan.target, *plan.target);
    }

    /// As in a slot, without the jump back.
    void add_placed(const Plan &plan, VirtAddr from) {
        const Placement placed = X86_64::place(plan, from, here());
        const bool usable = placed.size != 0 && placed.scratch < 0 && placed.method != Method::refuse;
        reaches_ = reaches_ && usable;
        show(from);
        if (usable && placed.pushed != 0) show_jump_of_call(placed, from);
        if (plan.insn.behind_lock != 0) show_at(plan.insn.behind_lock, from + plan.insn.behind_lock);
        bytes(std::span(placed.bytes).first(placed.copy_end));
    }

    /// A call is a push and a jump, which may fault.
    void show_jump_of_call(const Placement &placed, VirtAddr from) {
        Insn push;
        KT_CHECK(x86::decode(std::span(placed.bytes).first(placed.size), push) == x86::Decode::ok);
        show_at(push.length, from, placed.pushed);
    }

    VirtAddr site_, to_;
    Copies copies_;
    bool reaches_ = true;
};

} // namespace

tl::expected<Copies, NoJump> X86_64Detour::copy(const Window &window, std::span<const std::byte> code, VirtAddr site,
                                                VirtAddr to) {
    return Copier(site, to).copy(window, code);
}

} // namespace ktrace::arch
