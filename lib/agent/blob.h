// Blob: the agent as bytes that run wherever they are copied to (inside/), behind the entry that stubs call (arch/).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ktrace::agent {

/// Of this host's instruction set.
struct Blob {
    std::vector<std::byte> bytes; // its entry first
    std::size_t bell = 0;         // in it: where the trap that rings is
};

const Blob &blob();

} // namespace ktrace::agent
