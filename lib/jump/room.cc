#include "jump/room.h"

#include <algorithm>

#include "jump/page.h"

namespace ktrace::jump {

namespace {

using Grows = Mapped::Grows;

/// Addresses as numbers that stay within 0 and the largest one.
std::uint64_t plus(std::uint64_t a, std::uint64_t b) { return a + b < a ? ~std::uint64_t{0} : a + b; }
std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a < b ? 0 : a - b; }

Free::Rank rank_of(const Mapped *below, const Mapped *above) {
    if (below != nullptr && below->grows == Grows::up) return Free::Rank::above_heap;
    const bool is_below_stack = above != nullptr && above->grows == Grows::down;
    return below == nullptr || is_below_stack ? Free::Rank::apart : Free::Rank::between;
}

/// The range between two neighbours, either of which may be missing; empty where nothing is left.
Free between(const Mapped *below, const Mapped *above, const Kept &kept) {
    std::uint64_t start = kept.lowest.value, end = kept.highest.value;
    if (below != nullptr)
        start = std::max(start, plus(below->end.value, below->grows == Grows::up ? kept.above_heap : kept.beside));
    if (above != nullptr)
        end = std::min(end, minus(above->start.value, above->grows == Grows::down ? kept.below_stack : kept.beside));
    start = plus(start, page_size - 1) & ~(page_size - 1);
    end &= ~(page_size - 1);
    return {VirtAddr{start}, VirtAddr{std::max(start, end)}, rank_of(below, above)};
}

} // namespace

std::vector<Free> free_ranges(std::span<const Mapped> mapped, const Kept &kept) {
    std::vector<Free> all;
    const Mapped *below = nullptr;
    auto add = [&](const Mapped *above) {
        const Free range = between(below, above, kept);
        if (range.start < range.end) all.push_back(range);
    };
    for (const Mapped &each : mapped) {
        add(&each);
        below = &each;
    }
    add(nullptr);
    return all;
}

} // namespace ktrace::jump
