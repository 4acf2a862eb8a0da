// The machine's way to the target's memory, within the target: a load, where ktrace has seen that memory is there. The
// rest is ktrace's, by a stop; so is a load that faults because the memory has gone meanwhile.
#include <algorithm>
#include <cstring>

#include "agent/inside/hit.h"
#include "program/run/read_cache.h"

namespace ktrace::program {

namespace {

using agent::Range;
using agent::Ranges;

/// Bytes from `at` on, up to `most`.
std::size_t readable_from(const Ranges &ranges, std::uint64_t at, std::size_t most) {
    const Range *low = ranges.range, *high = low + std::min(ranges.count, agent::most_ranges);
    while (low != high) { // the first that ends behind it
        const Range *middle = low + (high - low) / 2;
        if (middle->high <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == ranges.range + std::min(ranges.count, agent::most_ranges) || at < low->low) return 0;
    return std::min<std::uint64_t>(most, low->high - at);
}

/// A fault is known by Thread::reads.
void set(std::uint64_t &word, std::uint64_t value) { *static_cast<volatile std::uint64_t *>(&word) = value; }

} // namespace

std::size_t read_target(const HitView &view, std::uint64_t at, std::span<std::byte> into) {
    const agent::Hit &hit = static_cast<const agent::View &>(view).hit;
    const auto now = *static_cast<const volatile std::uint64_t *>(&hit.threads.readable_now) & 1;
    const std::size_t size = readable_from(hit.threads.readable[now], at, into.size());
    if (size == 0) return 0;
    set(hit.thread.reads, at);
    asm volatile("" ::: "memory");
    std::memcpy(into.data(), reinterpret_cast<const std::byte *>(at), size);
    asm volatile("" ::: "memory");
    set(hit.thread.reads, 0);
    return size;
}

void note_unreadable(const HitView &view, std::uint64_t at) {
    static_cast<const agent::View &>(view).hit.thread.missed = at == 0 ? 1 : at;
}

} // namespace ktrace::program
