#include "tests/tools/share.h"

#include <optional>

#include "jump/landings.h"
#include "x86_64/detour/detour.h"

namespace ktrace::tools {

namespace {

using arch::NoJump;
using arch::X86_64Detour;
using Grows = jump::Mapped::Grows;

constexpr std::uint64_t mib = 1 << 20, page = 0x1000;
constexpr std::uint64_t program_at = 0x555555554000, library_at = 0x7ffff0000000;
constexpr std::uint64_t stack_at = 0x7ffffffde000, stack_end = 0x7ffffffff000;
/// Around a library: others, and below them what is mapped later, malloc's arenas.
constexpr std::uint64_t libraries = 64 * mib, arenas = 128 * mib;
constexpr std::uint64_t heap = 64 * mib, gap_before_heap = 16 * mib;
constexpr std::size_t stub_size = 128;
constexpr std::size_t most_mappings = 65530 / 10; // a tenth of vm.max_map_count

arch::TrapBytes bytes_of(Traps traps) {
    const arch::ByteSet &breakpoint = X86_64Detour::trap_byte();
    if (traps == Traps::breakpoints) return {breakpoint, breakpoint};
    const arch::ByteSet all = breakpoint | X86_64Detour::illegal_bytes();
    return {all, all};
}

/// A place for stubs within 1 GiB of an address, below or above it.
std::optional<VirtAddr> place_for_stubs(const std::vector<jump::Free> &free, VirtAddr from, bool below) {
    arch::LandingRule rule;
    rule.from = from;
    for (std::size_t i = 0; i < 3; ++i) rule.distance[i].set();
    for (unsigned top = 0; top < 0x40; ++top) rule.distance[3].set(below ? 0xff - top : top);
    return jump::Landings(free, stub_size, 1).take(rule);
}

std::uint64_t page_behind(std::uint64_t address) { return (address + page - 1) & ~(page - 1); }

/// A window with the site that it is of.
struct Candidate {
    VirtAddr at;
    arch::Window window;
    std::span<const std::byte> code;
};

/// The sites of one kind.
class Sites {
  public:
    Sites(const File &file, const Placed &place) : file_(file), place_(place) {}

    void add(const Function &function, std::span<const VirtAddr> targets, std::uint64_t vaddr) {
        ++sites_;
        const std::uint64_t bias = place_.bias;
        arch::DetourSite site;
        site.at = VirtAddr{vaddr + bias};
        site.code = file_.code(vaddr, X86_64Detour::longest_window);
        site.function_end = VirtAddr{function.end + bias};
        site.padding_end = VirtAddr{function.padding_end + bias};
        site.targets = targets;
        const auto window = X86_64Detour::window(site);
        if (!window)
            refuse(window.error());
        else if (file_.module().in_sequence(vaddr, window->length))
            refuse(NoJump::restartable_sequence);
        else
            candidates_.push_back({site.at, *window, site.code});
    }

    Share share(Traps traps) {
        Share share;
        share.sites = sites_;
        share.refused = refused_;
        jump::Landings landings(place_.free, X86_64Detour::jump_size, most_mappings);
        const arch::TrapBytes bytes = bytes_of(traps);
        for (const Candidate &each : candidates_) {
            const auto refusal = why_not(landings, each, bytes);
            if (refusal) ++share.refused[static_cast<std::size_t>(*refusal)];
            if (!refusal) ++share.jumps;
        }
        return share;
    }

  private:
    void refuse(NoJump why) { ++refused_[static_cast<std::size_t>(why)]; }

    std::optional<NoJump> why_not(jump::Landings &landings, const Candidate &site, const arch::TrapBytes &traps) const {
        const auto landing = landings.take(X86_64Detour::landing_rule(site.window, site.at, traps));
        if (!landing) return NoJump::no_room;
        const auto stub = *landing < site.at ? place_.below : place_.above;
        if (!stub) return NoJump::no_room;
        const auto copies = X86_64Detour::copy(site.window, site.code, site.at, *stub);
        if (!copies) return copies.error();
        return X86_64Detour::jump(*landing, *stub) ? std::nullopt : std::optional(NoJump::out_of_reach);
    }

    const File &file_;
    const Placed &place_;
    std::uint64_t sites_ = 0;
    std::array<std::uint64_t, arch::no_jump_reasons> refused_{};
    std::vector<Candidate> candidates_;
};

} // namespace

Placed placed(const File &file) {
    const Function extent = file.extent();
    const bool moves = file.module().position_independent(), library = file.is_library();
    Placed place;
    if (moves) place.bias = library ? library_at : program_at;
    const std::uint64_t start = place.bias + extent.start, end = page_behind(place.bias + extent.end);
    const jump::Mapped stack{VirtAddr{stack_at}, VirtAddr{stack_end}, Grows::down};
    std::vector<jump::Mapped> mapped;
    if (library) {
        mapped = {{VirtAddr{start - libraries - arenas}, VirtAddr{end + libraries}}, stack};
    } else {
        const VirtAddr brk{end + gap_before_heap};
        mapped = {{VirtAddr{start}, VirtAddr{end}},
                  {brk, brk + static_cast<std::int64_t>(heap), Grows::up},
                  {VirtAddr{library_at - arenas}, VirtAddr{library_at + libraries}},
                  stack};
    }
    place.free = jump::free_ranges(mapped, {});
    place.below = place_for_stubs(place.free, VirtAddr{start}, true);
    place.above = place_for_stubs(place.free, VirtAddr{end}, false);
    if (!place.below) place.below = place.above;
    if (!place.above) place.above = place.below;
    return place;
}

FileShares shares_of(const File &file) {
    const Placed place = placed(file);
    Sites entries(file, place), returns(file, place);
    for (const Function &function : file.functions()) {
        const auto code = file.code(function.start, function.end - function.start);
        const auto targets = X86_64Detour::targets(code, VirtAddr{function.start + place.bias});
        entries.add(function, targets, function.start);
        for (const std::uint64_t vaddr : file.return_sites(function)) returns.add(function, targets, vaddr);
    }
    FileShares shares;
    for (const Traps traps : {Traps::breakpoints, Traps::all}) {
        shares.entries.of[static_cast<std::size_t>(traps)] = entries.share(traps);
        shares.returns.of[static_cast<std::size_t>(traps)] = returns.share(traps);
    }
    return shares;
}

} // namespace ktrace::tools
