// The machine's way to the target's memory, outside of the target.
#include "program/run/read_cache.h"

namespace ktrace::program {

std::size_t read_target(const HitView &hit, std::uint64_t at, std::span<std::byte> into) {
    return hit.memory->read(VirtAddr{at}, into);
}

void note_unreadable(const HitView &, std::uint64_t) {}

} // namespace ktrace::program
