// ReadCache: the target's memory as one hit sees it. A read of the target costs the same for 8 bytes as for 512, so the
// bytes around are read along, and values nearby cost nothing more.
//
// Invariants: a window never begins in another page than the bytes asked for, so an unmapped neighbour cannot spoil it;
// windows are never kept from one hit to the next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "program/run/program.h"

namespace ktrace::program {

/// The target's memory in a hit: as Memory::read.
std::size_t read_target(const HitView &hit, std::uint64_t at, std::span<std::byte> into);
/// The hit asks for bytes that cannot be read; `at` is the first of them.
void note_unreadable(const HitView &hit, std::uint64_t at);

class ReadCache {
  public:
    explicit ReadCache(const HitView &hit) : hit_(hit) {}

    /// As Memory::read: the number of bytes that were readable, from the front.
    std::size_t read(std::uint64_t at, std::span<std::byte> into) {
        const std::size_t size = into.size() > window_size / 2 ? read_target(hit_, at, into) : read_window(at, into);
        if (size < into.size()) note_unreadable(hit_, at + size);
        return size;
    }

  private:
    std::size_t read_window(std::uint64_t at, std::span<std::byte> into) {
        const Window &window = window_of(at, into.size());
        std::uint64_t offset = at - window.start;
        std::size_t size = offset < window.size ? std::min<std::size_t>(into.size(), window.size - offset) : 0;
        if (size != 0) std::memcpy(into.data(), window.bytes.data() + offset, size);
        return size;
    }

    static constexpr std::size_t window_size = 512, align = 128;
    struct Window {
        std::uint64_t start;
        std::size_t asked; // bytes of the target that were asked for
        std::size_t size;  // and of these, readable
        std::array<std::byte, window_size> bytes;
    };

    const Window &window_of(std::uint64_t at, std::size_t size) {
        for (const Window &window : std::span(windows_).first(std::min(next_, windows_.size())))
            if (at - window.start < window.asked && at - window.start + size <= window.asked) return window;
        Window &window = windows_[next_++ % windows_.size()];
        window.start = at & ~std::uint64_t{align - 1};
        window.asked = std::min<std::uint64_t>(window_size, 0 - window.start - 1); // not beyond the end of addresses
        window.size = read_target(hit_, window.start, std::span(window.bytes).first(window.asked));
        return window;
    }

    const HitView &hit_;
    std::array<Window, 4> windows_; // not cleared: only the first ones are in use
    std::size_t next_ = 0;
};

} // namespace ktrace::program
