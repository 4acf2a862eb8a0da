#include "jump/landings.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace ktrace::jump {

namespace {

constexpr std::uint64_t block =
    0x10000; // what the two lower bytes of a distance reach: their pattern repeats behind it

std::uint64_t page_of(std::uint64_t address) { return address & ~(page_size - 1); }

} // namespace

/// Addresses, all of which the two upper bytes of a rule's distance allow.
struct Landings::Interval {
    std::uint64_t start, end;

    static std::vector<Interval> of(const arch::LandingRule &rule) {
        constexpr std::int64_t blocks = 0x100; // of a value of the uppermost byte
        std::vector<Interval> all;
        std::vector<std::int64_t> middles;
        for (std::int64_t middle = 0; middle < blocks; ++middle)
            if (rule.distance[2][static_cast<std::size_t>(middle)]) middles.push_back(middle);
        for (std::int64_t top = -0x80; top < 0x80; ++top) {
            if (!rule.distance[3][static_cast<std::uint8_t>(top)]) continue;
            if (rule.distance[2].all()) {
                add(all, rule.from, top * blocks, blocks);
                continue;
            }
            for (const std::int64_t middle : middles) add(all, rule.from, top * blocks + middle, 1);
        }
        return all;
    }

  private:
    static void add(std::vector<Interval> &all, VirtAddr from, std::int64_t blocks, std::int64_t count) {
        const std::int64_t distance = blocks * static_cast<std::int64_t>(block);
        if (distance < 0 && from.value < static_cast<std::uint64_t>(-distance)) return;
        const std::uint64_t start = (from + distance).value;
        const std::uint64_t end = start + static_cast<std::uint64_t>(count) * block;
        if (!all.empty() && all.back().end == start)
            all.back().end = end;
        else
            all.push_back({start, end});
    }
};

/// The search for one landing.
struct Landings::Wanted {
    const arch::LandingRule &rule;
    std::vector<Interval> intervals;
    // From each lowest byte of a distance to the next one that is allowed, or to the end of these.
    std::array<std::uint16_t, 0x100> to_next;

    explicit Wanted(const arch::LandingRule &of) : rule(of), intervals(Interval::of(of)), to_next() {
        std::uint16_t distance = 0;
        for (std::size_t byte = to_next.size(); byte-- > 0;) {
            distance = rule.distance[0][byte] ? 0 : static_cast<std::uint16_t>(distance + 1);
            to_next[byte] = distance;
        }
    }
};

Landings::Landings(std::vector<Free> free, std::size_t size, std::size_t most_mappings)
    : free_(std::move(free)), size_(size), most_mappings_(most_mappings) {}

void Landings::keep(VirtAddr landing) { use(page_of(landing.value), landing); }

void Landings::exclude(VirtAddr start, VirtAddr end) {
    std::vector<Free> left;
    for (const Free &each : free_) {
        if (each.start < start) left.push_back({each.start, std::min(each.end, start), each.rank});
        if (end < each.end) left.push_back({std::max(each.start, end), each.end, each.rank});
    }
    free_ = std::move(left);
}

std::optional<VirtAddr> Landings::take(const arch::LandingRule &rule) {
    const Wanted wanted(rule);
    if (const auto landing = in_known_page(wanted)) return landing;
    if (const auto landing = beside_known_page(wanted)) return landing;
    return in_new_page(wanted);
}

void Landings::give_back(VirtAddr landing) {
    const auto found = pages_.find(page_of(landing.value));
    KT_CHECK(found != pages_.end());
    const std::size_t offset = landing.value - found->first;
    for (std::size_t i = 0; i < size_; ++i) found->second.used.reset(offset + i);
    found->second.hint = std::min(found->second.hint, offset < size_ ? 0 : offset - size_ + 1);
}

std::vector<VirtAddr> Landings::pages() const {
    std::vector<VirtAddr> all;
    for (const auto &[page, used] : pages_) all.emplace_back(page);
    return all;
}

std::optional<VirtAddr> Landings::in_known_page(const Wanted &wanted) {
    for (const Interval &interval : wanted.intervals)
        for (auto each = pages_.lower_bound(page_of(interval.start));
             each != pages_.end() && each->first < interval.end; ++each)
            if (const auto landing = use(each->first, place_in(wanted, each->first, interval))) return landing;
    return std::nullopt;
}

std::optional<VirtAddr> Landings::beside_known_page(const Wanted &wanted) {
    for (const Interval &interval : wanted.intervals) {
        const std::uint64_t first = page_of(interval.start);
        auto each = pages_.lower_bound(first < page_size ? 0 : first - page_size);
        for (; each != pages_.end() && each->first < interval.end + page_size; ++each)
            for (const std::uint64_t page : {each->first + page_size, each->first - page_size}) {
                if (!is_free(page)) continue;
                if (const auto landing = use(page, place_in(wanted, page, interval))) return landing;
            }
    }
    return std::nullopt;
}

std::optional<VirtAddr> Landings::in_new_page(const Wanted &wanted) {
    if (mappings_ >= most_mappings_) return std::nullopt;
    for (const Free::Rank rank : {Free::Rank::apart, Free::Rank::between, Free::Rank::above_heap})
        for (const Interval &interval : wanted.intervals)
            for (const Free &range : free_) {
                if (range.rank != rank || range.end.value <= interval.start || range.start.value >= interval.end)
                    continue;
                if (const auto landing = in_new_page(wanted, interval, range)) return landing;
            }
    return std::nullopt;
}

/// From the middle on, where the sites beside this one reach the page, too. An address that
/// the lower bytes allow is found in each block, or nowhere.
std::optional<VirtAddr> Landings::in_new_page(const Wanted &wanted, const Interval &interval, const Free &range) {
    const std::uint64_t start = std::max(page_of(interval.start), range.start.value);
    const std::uint64_t end = std::min(interval.end, range.end.value);
    const std::uint64_t middle = page_of(start + (end - start) / 2);
    for (std::uint64_t away = 0; away <= block; away += page_size)
        for (const std::uint64_t page : {middle + away, middle - away}) {
            if (page < start || page >= end || !is_free(page)) continue;
            if (const auto landing = use(page, place_in(wanted, page, interval))) return landing;
        }
    return std::nullopt;
}

/// The first place in a page that the interval, the lower bytes and the other landings leave.
std::optional<VirtAddr> Landings::place_in(const Wanted &wanted, std::uint64_t page, const Interval &interval) {
    const auto found = pages_.find(page);
    const Page *const known = found != pages_.end() ? &found->second : nullptr;
    auto behind_used = [&](std::uint64_t place) { // behind the last byte there that is used; itself: none is
        if (known == nullptr) return place;
        for (std::size_t i = size_; i-- > 0;)
            if (known->used[place - page + i]) return place + i + 1;
        return place;
    };
    std::uint64_t at = std::max(page + (known != nullptr ? known->hint : 0), interval.start);
    const std::uint64_t end = std::min(page + page_size - size_ + 1, interval.end);
    while (at < end) {
        const std::uint64_t distance = at - wanted.rule.from.value;
        const std::uint64_t lowest = distance & 0xff;
        if (!wanted.rule.distance[1][distance >> 8 & 0xff])
            at += 0x100 - lowest;
        else if (wanted.to_next[lowest] != 0)
            at += wanted.to_next[lowest];
        else if (const std::uint64_t behind = behind_used(at); behind != at)
            at = behind;
        else
            return VirtAddr{at};
    }
    return std::nullopt;
}

std::optional<VirtAddr> Landings::use(std::uint64_t page, std::optional<VirtAddr> landing) {
    if (!landing) return std::nullopt;
    const auto [found, is_new] = pages_.try_emplace(page);
    if (is_new) {
        const bool below = pages_.contains(page - page_size), above = pages_.contains(page + page_size);
        mappings_ += 1 - (below ? 1 : 0) - (above ? 1 : 0);
    }
    Page &used = found->second;
    for (std::size_t i = 0; i < size_; ++i) used.used.set(landing->value - page + i);
    while (used.hint < page_size && used.used[used.hint]) ++used.hint;
    return landing;
}

bool Landings::is_free(std::uint64_t page) const {
    if (pages_.contains(page)) return false;
    const auto behind = std::upper_bound(free_.begin(), free_.end(), page,
                                         [](std::uint64_t at, const Free &each) { return at < each.start.value; });
    return behind != free_.begin() && page + page_size <= std::prev(behind)->end.value;
}

} // namespace ktrace::jump
