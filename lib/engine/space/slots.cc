#include "engine/space/slots.h"

#include <algorithm>

#include "arch/host.h"

namespace ktrace::engine {

using arch::Host;

namespace {

bool reaches(VirtAddr a, VirtAddr b, std::uint64_t reach = Host::reach) {
    std::uint64_t distance = a < b ? b.value - a.value : a.value - b.value;
    return distance < reach;
}

constexpr std::uint64_t lowest_address = 0x10000;             // vm.mmap_min_addr's usual value
constexpr std::uint64_t heap_growth = std::uint64_t{1} << 30; // kept free behind [heap]
constexpr std::uint64_t guard = 0x10000;                      // kept free on both sides of an arena

} // namespace

std::optional<VirtAddr> Slots::take(VirtAddr near) {
    for (Arena &arena : arenas_) {
        if (arena.is_whole || arena.used + arch::slot_size > arena.size || !reaches(arena.start, near) ||
            !reaches(arena.end(), near))
            continue;
        VirtAddr slot = arena.start + static_cast<std::int64_t>(arena.used);
        arena.used += arch::slot_size;
        return slot;
    }
    auto usable = [&](VirtAddr slot) { return reaches(slot, near); };
    auto found = std::find_if(free_.begin(), free_.end(), usable);
    if (found == free_.end()) return std::nullopt;
    VirtAddr slot = *found;
    *found = free_.back();
    free_.pop_back();
    return slot;
}

std::size_t Slots::room(VirtAddr near) const {
    std::size_t count = 0;
    for (const Arena &arena : arenas_)
        if (!arena.is_whole && reaches(arena.start, near) && reaches(arena.end(), near))
            count += (arena.size - arena.used) / arch::slot_size;
    auto reachable = std::count_if(free_.begin(), free_.end(), [near](VirtAddr slot) { return reaches(slot, near); });
    return count + static_cast<std::size_t>(reachable);
}

void Slots::release(std::uint64_t moment) {
    while (!retired_.empty() && retired_.front().moment < moment) {
        free_.push_back(retired_.front().slot);
        retired_.pop_front();
    }
}

bool Slots::contains(VirtAddr pc) const {
    return std::any_of(arenas_.begin(), arenas_.end(),
                       [&](const Arena &arena) { return arena.start <= pc && pc < arena.end(); });
}

std::optional<VirtAddr> Slots::slot_at(VirtAddr pc) const {
    for (const Arena &arena : arenas_)
        if (arena.start <= pc && pc < arena.end())
            return pc - static_cast<std::int64_t>((pc.value - arena.start.value) % arch::slot_size);
    return std::nullopt;
}

void Slots::lose(const std::vector<Arena> &arenas) {
    for (const Arena &lost : arenas)
        std::erase_if(arenas_, [&](const Arena &arena) { return arena.start == lost.start; });
}

void Slots::clear() {
    arenas_.clear();
    free_.clear();
    retired_.clear();
}

std::optional<VirtAddr> place_arena(const std::vector<os::Mapping> &maps, VirtAddr low, VirtAddr high, std::size_t size,
                                    std::uint64_t reach) {
    std::optional<VirtAddr> best;
    std::uint64_t best_distance = ~std::uint64_t{0};
    auto consider = [&](std::uint64_t start) {
        VirtAddr at{start};
        VirtAddr end{start + size};
        if (!reaches(at, low, reach) || !reaches(at, high, reach) || !reaches(end, low, reach) ||
            !reaches(end, high, reach))
            return;
        std::uint64_t distance = at < low ? low.value - at.value : at.value - low.value;
        if (distance >= best_distance) return;
        best = at;
        best_distance = distance;
    };
    std::uint64_t hole = lowest_address;
    bool behind_heap = false;
    for (const os::Mapping &mapping : maps) {
        std::uint64_t start = mapping.start.value;
        // The main stack grows down into the hole below it: only its far end may be used.
        if (mapping.path == "[vsyscall]") break;
        std::uint64_t first = hole + (hole == lowest_address ? 0 : guard) + (behind_heap ? heap_growth : 0);
        if (start > first && start - first >= size + guard) {
            if (mapping.path != "[stack]") consider((start - guard - size) & ~std::uint64_t{4095});
            if (!behind_heap || start > first + heap_growth) consider((first + 4095) & ~std::uint64_t{4095});
        }
        hole = std::max(hole, mapping.end.value);
        behind_heap = mapping.path == "[heap]";
    }
    return best;
}

} // namespace ktrace::engine
