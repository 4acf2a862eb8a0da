// Place: where a value lies at a hit, as data: DWARF location descriptions (DWARF 5, 2.6) and calling conventions both
// become this, and eval runs it without libdw, allocation or system calls.
//
// A Place is a list of pieces (DW_OP_piece); most have one. The ops of a piece are a DWARF stack machine whose CFA,
// frame base and module bias have been put in when the Place was made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ktrace::value {

struct Op {
    enum class Code : std::uint8_t {
        push,          // operand
        push_register, // register `reg` (DWARF number) + operand
        deref,         // pop address; push the unsigned value of `size` bytes there
        dup,
        drop,
        over,
        swap,
        rot,
        pick, // pick: operand
        abs,
        and_,
        div,
        minus,
        mod,
        mul,
        neg,
        not_,
        or_,
        plus,
        shl,
        shr,
        shra,
        xor_, // DW_OP_*, 64 bit; div signed, mod unsigned
        eq,
        ge,
        gt,
        le,
        lt,
        ne, // signed
        bra,
        skip, // operand: relative index of the next op, counted from the one behind this
        tls,  // pop offset in the module's TLS block; push its address in this thread (operand: the block, from the
              // thread pointer; 0: not known)
        entry_register, // DW_OP_entry_value(reg): only where the caller's frame is known; else the piece is unavailable
    };
    Code code = Code::push;
    std::uint8_t size = 8;
    std::uint16_t reg = 0;
    std::int64_t operand = 0;
    bool operator==(const Op &) const = default;
};

struct Piece {
    enum class Kind : std::uint8_t {
        memory,      // the ops leave an address
        register_,   // in register `reg` (DWARF number), from byte `reg_offset` on
        value,       // the ops leave the value itself (DW_OP_stack_value)
        bytes,       // DW_OP_implicit_value: `bytes`
        unavailable, // optimized out
        not_known,   // it is somewhere
    };
    Kind kind = Kind::memory;
    std::uint16_t reg = 0;
    std::uint16_t reg_offset = 0;
    std::uint32_t size = 0; // bytes of the object that this piece gives; 0: the whole object
    std::vector<Op> ops;
    std::vector<std::uint8_t> bytes;
    bool operator==(const Piece &) const = default;
};

struct Place {
    std::vector<Piece> pieces;
    std::string why; // where there is no place: the reason, for the user

    static Place in_register(std::uint16_t dwarf_register) {
        Place place;
        place.pieces.resize(1);
        place.pieces[0].kind = Piece::Kind::register_;
        place.pieces[0].reg = dwarf_register;
        return place;
    }
    /// In memory at register + offset.
    static Place at_register(std::uint16_t dwarf_register, std::int64_t offset) {
        Place place;
        place.pieces.resize(1);
        place.pieces[0].ops.push_back({Op::Code::push_register, 8, dwarf_register, offset});
        return place;
    }
    /// The debug information says that it is nowhere.
    static Place unavailable(std::string why) { return without(Piece::Kind::unavailable, std::move(why)); }
    static Place not_known(std::string why) { return without(Piece::Kind::not_known, std::move(why)); }

    /// The object that a pointer in this place (a register, or memory) points to.
    Place pointed_to() const {
        if (pieces.size() != 1 || !why.empty()) return *this;
        if (pieces[0].kind == Piece::Kind::register_) return at_register(pieces[0].reg, 0);
        Place place = *this;
        if (pieces[0].kind == Piece::Kind::memory) place.pieces[0].ops.push_back({Op::Code::deref, 8, 0, 0});
        return place;
    }

  private:
    static Place without(Piece::Kind kind, std::string why) {
        Place place;
        place.pieces.resize(1);
        place.pieces[0].kind = kind;
        place.why = std::move(why);
        return place;
    }
};

} // namespace ktrace::value
