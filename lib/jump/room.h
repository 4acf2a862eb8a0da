// Room: the parts of an address space where a landing may be put without being in the way of the program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/addr.h"

namespace ktrace::jump {

/// A mapping of the program's, or a place where it is about to have one (start = end).
struct Mapped {
    enum class Grows : std::uint8_t { no, down, up }; // down: a stack; up: the heap
    VirtAddr start, end;
    Grows grows = Grows::no;
};

/// A range that may be taken. The kernel chooses places for mappings from the top of the libraries down, so not above
/// them; and the heap is in the way of nothing else.
struct Free {
    enum class Rank : std::uint8_t { apart, between, above_heap }; // best first
    VirtAddr start, end;                                           // whole pages
    Rank rank = Rank::apart;
};

/// Room that is kept free for the program, in bytes.
struct Kept {
    std::uint64_t below_stack = 128 << 20; // RLIMIT_STACK, where that is more
    std::uint64_t above_heap = 256 << 20;
    std::uint64_t beside = 64 << 10; // any mapping
    VirtAddr lowest{0x10000}, highest{0x7ffffffff000};
};

/// `mapped` in order of addresses, as /proc/PID/maps has them; so are the free ranges.
std::vector<Free> free_ranges(std::span<const Mapped> mapped, const Kept &kept);

} // namespace ktrace::jump
