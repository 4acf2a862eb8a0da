#include "go_results.h"

namespace ktrace::arch {

namespace {

using value::Piece;
using value::Place;
using value::Type;

constexpr int deepest = 16;

struct Registers {
    std::span<const std::uint16_t> integers, floats;
};

/// The parts of one result.
class Assignment {
  public:
    explicit Assignment(Registers &left) : left_(left) {}

    /// False: a register is missing, or a type is none of Go's.
    bool assign(const Type &type, std::uint64_t offset, int depth) {
        if (depth == 0) return false;
        switch (type.kind) {
        case Type::Kind::structure:
            for (const value::Member &member : type.members)
                if (!member.type || !assign(*member.type, offset + member.offset, depth - 1)) return false;
            return true;
        case Type::Kind::array:
            if (type.count == 0 && type.size == 0) return true;
            return type.count == 1 && type.target && assign(*type.target, offset, depth - 1);
        case Type::Kind::floating: return take(left_.floats, offset, type.size);
        case Type::Kind::complex:
            return take(left_.floats, offset, type.size / 2) &&
                   take(left_.floats, offset + type.size / 2, type.size / 2);
        case Type::Kind::bool_:
        case Type::Kind::char_:
        case Type::Kind::integer:
        case Type::Kind::enumeration:
        case Type::Kind::pointer: return type.size <= 8 && take(left_.integers, offset, type.size);
        default: return false;
        }
    }
    Place place(std::uint64_t size) {
        fill(size);
        return std::move(place_);
    }

  private:
    bool take(std::span<const std::uint16_t> &from, std::uint64_t offset, std::uint64_t size) {
        if (from.empty() || offset < end_) return false;
        fill(offset);
        Piece &piece = place_.pieces.emplace_back();
        piece.kind = Piece::Kind::register_;
        piece.reg = from.front();
        piece.size = static_cast<std::uint32_t>(size);
        from = from.subspan(1);
        end_ = offset + size;
        return true;
    }
    /// Bytes that are only there for the alignment of others.
    void fill(std::uint64_t to) {
        if (to <= end_) return;
        Piece &piece = place_.pieces.emplace_back();
        piece.kind = Piece::Kind::bytes;
        piece.size = static_cast<std::uint32_t>(to - end_);
        piece.bytes.resize(piece.size);
        end_ = to;
    }

    Registers &left_;
    Place place_;
    std::uint64_t end_ = 0;
};

} // namespace

std::vector<Place> go_results(std::span<const Type *const> results, std::span<const std::uint16_t> integers,
                              std::span<const std::uint16_t> floats) {
    constexpr std::uint64_t largest = 1024; // bytes: more is never in registers
    Registers left{integers, floats};
    std::vector<Place> places;
    for (const Type *result : results) {
        Registers before = left;
        Assignment assignment(left);
        if (result && result->size <= largest && assignment.assign(*result, 0, deepest)) {
            places.push_back(assignment.place(result->size));
            continue;
        }
        left = before;
        places.push_back(Place::not_known("it is returned on the stack"));
        places.back().pieces[0].size = result ? static_cast<std::uint32_t>(result->size) : 0;
    }
    return places;
}

} // namespace ktrace::arch
