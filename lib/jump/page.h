// The unit in which memory is mapped. Every Linux that ktrace runs on has pages of 4 KiB or a multiple of that; on the
// others landings would lie a little less dense.
#pragma once

#include <cstdint>

namespace ktrace::jump {

inline constexpr std::uint64_t page_size = 4096;

} // namespace ktrace::jump
