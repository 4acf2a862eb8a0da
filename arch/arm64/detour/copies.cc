// Copies: the instruction of a window for another place. One that reads no pc is itself; the others become
//
//     adr, adrp            ldr of the address, which lies behind the copy
//     ldr of a literal     itself, where it reaches
//     b                    itself
//     b.cond, cbz, tbz     itself, over the way back: to a branch to the target
//     bl                   ldr x30 of the address behind the site | b target
//     blr                  ldr x30 likewise | br
//
// and behind one that control passes a branch leads back. No register is free here: a copy that would need one is none.
#include "arm64/arm64.h"
#include "arm64/detour/detour.h"
#include "arm64/words.h"
#include "base/check.h"

namespace ktrace::arch {

namespace {

constexpr unsigned link_register = 30;

class Copier {
  public:
    Copier(VirtAddr site, VirtAddr to) : site_(site), to_(to) {}

    tl::expected<Copies, NoJump> copy(const Arm64Plan &plan) {
        copies_.entries.push_back({0, 0});
        add(plan);
        if (literal_) put_literal();
        if (why_) return tl::unexpected(*why_);
        return copies_;
    }

  private:
    VirtAddr here() const { return to_ + static_cast<std::int64_t>(copies_.bytes.size()); }
    VirtAddr behind() const { return site_ + static_cast<std::int64_t>(a64_size); }

    void put(std::uint32_t word, VirtAddr shown) {
        copies_.shown.push_back({static_cast<std::uint8_t>(copies_.bytes.size()), shown});
        for (std::byte each : a64_bytes(word)) copies_.bytes.push_back(each);
    }
    void put(std::optional<std::uint32_t> word, VirtAddr shown) {
        if (!word) why_ = NoJump::out_of_reach;
        put(word.value_or(0), shown);
    }
    void branch(VirtAddr target, VirtAddr shown) { put(a64_make_branch(target - here()), shown); }

    void load(unsigned into, std::uint64_t value) {
        literal_ = value;
        load_at_ = copies_.bytes.size();
        put(0x58000000u | into, site_);
    }
    /// Behind all instructions, at a multiple of eight; the load that was put before finds it.
    void put_literal() {
        while (here().value % sizeof *literal_ != 0) copies_.bytes.push_back(std::byte{0});
        const std::uint32_t load = a64_word(copies_.bytes, load_at_);
        const auto distance = static_cast<std::int64_t>(copies_.bytes.size() - load_at_);
        const auto word = a64_bytes(a64_retarget_literal(load, distance).value_or(0));
        std::copy(word.begin(), word.end(), copies_.bytes.begin() + static_cast<std::ptrdiff_t>(load_at_));
        for (unsigned i = 0; i < sizeof *literal_; i++)
            copies_.bytes.push_back(static_cast<std::byte>(*literal_ >> 8 * i));
    }

    void add(const Arm64Plan &plan) {
        const VirtAddr target = site_ + plan.displacement;
        switch (plan.form) {
        case A64Form::adr: load(a64_field(plan.word, 0, 5), target.value); break;
        case A64Form::adrp:
            load(a64_field(plan.word, 0, 5),
                 (site_.value & ~std::uint64_t{0xfff}) + static_cast<std::uint64_t>(plan.displacement));
            break;
        case A64Form::literal_w:
        case A64Form::literal_x:
        case A64Form::literal_sw:
        case A64Form::literal_s:
        case A64Form::literal_d:
        case A64Form::literal_q:
        case A64Form::literal_prefetch: put(a64_retarget_literal(plan.word, target - here()), site_); break;
        case A64Form::branch: branch(target, site_); return;
        case A64Form::branch_if:
        case A64Form::compare: put((plan.word & ~(0x7ffffu << 5)) | 2u << 5, site_); return both_ways(target);
        case A64Form::test: put((plan.word & ~(0x3fffu << 5)) | 2u << 5, site_); return both_ways(target);
        case A64Form::branch_link:
            load(link_register, behind().value);
            branch(target, target);
            return;
        case A64Form::branch_link_register: return call(a64_field(plan.word, 5, 5));
        case A64Form::branch_link_authenticated: why_ = NoJump::unmovable; return;
        default: put(plan.word, site_);
        }
        if (plan.flow != Flow::jump && plan.flow != Flow::ret) branch(behind(), behind());
    }

    void both_ways(VirtAddr target) {
        branch(behind(), behind());
        branch(target, target);
    }

    void call(unsigned through) {
        if (through == link_register) why_ = NoJump::unmovable;
        load(link_register, behind().value);
        put(0xd61f0000u | through << 5, site_); // br; `leave` says where it leads
    }

    VirtAddr site_, to_;
    Copies copies_;
    std::optional<std::uint64_t> literal_;
    std::size_t load_at_ = 0;
    std::optional<NoJump> why_;
};

} // namespace

tl::expected<Copies, NoJump> Arm64Detour::copy(const Window &window, std::span<const std::byte> code, VirtAddr site,
                                               VirtAddr to) {
    KT_CHECK(code.size() >= window.length && window.length == a64_size);
    return Copier(site, to).copy(Arm64::plan(code, site));
}

} // namespace ktrace::arch
