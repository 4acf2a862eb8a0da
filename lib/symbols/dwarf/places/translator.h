// Translator: one DWARF expression (DWARF 5, 2.5 and 2.6, and the GNU extensions that 5 took over) becomes the ops and
// pieces of a Place.
//
// Invariants: `stack_` has the type of every word that the ops so far leave (unless there are branches); once something
// is refused, what is added behind it does not matter. Typed operations are done on 64-bit words: a value of an integer
// type is kept extended by its own signedness, and made so again after every operation. Floating point is not computed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "symbols/dwarf/places/places.h"

namespace ktrace::symbols {

/// The type of a stack entry: size 0 is the generic type, an address-sized word.
struct WordType {
    std::uint8_t size = 0;
    bool is_signed = false;
};

class Translator {
  public:
    Translator(const Viewpoint &view, Frames &frames) : view_(view), frames_(frames) {}

    value::Place translate(Dwarf_Attribute *attr, const Dwarf_Op *ops, std::size_t count);

  private:
    // building: dwarf_expressions.cc
    bool refuse(std::string why);
    bool broken() { return refuse("its debug information is broken"); }

    void emit(value::Op::Code code, std::int64_t operand = 0, std::uint16_t reg = 0, std::uint8_t size = 8);

    void push(std::uint64_t value, WordType type = {});
    void push_register(std::uint64_t reg, std::int64_t offset, WordType type = {});

    bool pop(std::size_t count);
    WordType top(std::size_t below = 0) const;

    /// Makes the word on top a proper value of its type again.
    void extend(WordType type);

    bool locate(value::Piece::Kind kind);

    void finish_piece(std::uint64_t size);

    // operations: dwarf_expressions.cc
    void add_all(Dwarf_Attribute *attr, const Dwarf_Op *ops, std::size_t count);

    bool add(Dwarf_Attribute *attr, const Dwarf_Op &op, const Dwarf_Op *next);

    bool refuse_rest(std::uint8_t atom);

    /// Literals and addresses.
    bool add_constant(Dwarf_Attribute *attr, const Dwarf_Op &op, const Dwarf_Op *next);

    /// Registers as locations, and addresses relative to them.
    bool add_register(const Dwarf_Op &op);

    bool in_register(std::uint64_t reg);

    bool add_stack(const Dwarf_Op &op);

    bool add_plain(std::uint8_t atom);

    /// Unsigned words compare as signed ones do once their top bits are flipped.
    void offset_both();

    /// A logical shift of a signed value narrower than a word: the extension above it must not come in.
    void mask_below(WordType type);

    bool add_memory(Dwarf_Attribute *attr, const Dwarf_Op &op);

    bool add_location(Dwarf_Attribute *attr, const Dwarf_Op &op);

    bool bit_piece(std::uint64_t bits, std::uint64_t first);

    // what refers to something else: dwarf_expression_references.cc

    /// The ops that give a Place's address or value, as part of this expression.
    void push_inner(const value::Place &inner);

    value::Place nested(Dwarf_Attribute *attr, const Dwarf_Op *ops, std::size_t count);

    void push_cfa();

    void push_frame_base();

    /// False where a register is not the frame base that the body of the function has: before the prologue has set it
    /// up and after an epilogue restored it, a frame pointer is still the caller's, and a stack pointer has moved.
    bool is_frame_register(unsigned reg);

    bool call(Dwarf_Attribute &attr, const Dwarf_Op &op);

    bool entry_value(Dwarf_Attribute &attr, const Dwarf_Op &op);

    // typed operations: dwarf_typed_expressions.cc
    std::optional<WordType> word_type(Dwarf_Attribute &attr, const Dwarf_Op &op);

    bool add_typed(Dwarf_Attribute *attr, const Dwarf_Op &op);

    bool convert(Dwarf_Attribute &attr, const Dwarf_Op &op);

    bool add_typed_value(Dwarf_Attribute &attr, const Dwarf_Op &op, WordType type);

    const Viewpoint &view_;
    Frames &frames_;
    value::Place place_;
    value::Piece piece_;
    std::vector<WordType> stack_; // types of what the ops so far leave; meaningless where there are branches
    bool located_ = false;        // piece_ is complete
    bool has_branches_ = false;
    std::size_t emitted_ = 0;
    int depth_ = 0;
    std::string why_;  // refused
    std::string gone_; // why a piece is not available
};

} // namespace ktrace::symbols
