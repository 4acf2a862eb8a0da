#include "probe/vector_places.h"

#include <algorithm>

#include "arch/host.h"

namespace ktrace::probe {

bool is_vector_doubtful(const Location &location, std::span<const value::Place> places) {
    constexpr std::uint32_t sure = 16;
    std::uint32_t widest = 0;
    for (const value::Place &place : places)
        for (const value::Piece &piece : place.pieces)
            if (piece.kind == value::Piece::Kind::register_) widest = std::max(widest, piece.size);
    if (widest <= sure) return false;
    if (!location.module || location.function_end <= location.function) return true;
    const std::vector<std::byte> code =
        location.module->bytes_at(location.function, location.function_end - location.function);
    return arch::Host::widest_vector(code) < widest;
}

} // namespace ktrace::probe
