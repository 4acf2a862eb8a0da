// Share: which of many sites in one file get a jump, and why the others get none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "arch/isa_detour.h"
#include "jump/room.h"
#include "tests/tools/functions.h"

namespace ktrace::tools {

/// All sites of one kind: each as if it were the only one, but with landings for all of them at once.
struct Share {
    std::uint64_t sites = 0, jumps = 0;
    std::array<std::uint64_t, arch::no_jump_reasons> refused{};
};

/// The trap bytes that inner boundaries may have.
enum class Traps : std::uint8_t { breakpoints, all };

struct Shares {
    Share of[2]; // by Traps
};

/// A file in an address space that is made up: what surrounds it is as usual, but nowhere else.
struct Placed {
    std::uint64_t bias = 0;
    std::vector<jump::Free> free;
    std::optional<VirtAddr> below, above; // places for stubs: of landings below the sites, and above them
};
Placed placed(const File &file);

/// Both kinds of sites in a file.
struct FileShares {
    Shares entries, returns;
};
FileShares shares_of(const File &file);

} // namespace ktrace::tools
