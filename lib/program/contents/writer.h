// Writer: the code of one printer as it is written.
//
// Invariants: a printer finds the object's address on top of the stack, and leaves the stack without it; a value that
// is bad where check() stands becomes the node instead, at whatever depth of the stack.
#pragma once

#include <optional>
#include <utility>

#include "program/contents/contents.h"

namespace ktrace::program::contents {

inline constexpr std::int64_t largest_count = std::int64_t{1} << 32; // elements: more is no count

/// A member, of the type itself or of what it holds by value.
struct Found {
    std::uint64_t offset = 0;
    const value::Type *type = nullptr;
};

/// The first member of that name in depth, also of base classes. `of`: of this kind alone.
std::optional<Found> find(const value::Type &type, std::string_view name,
                          std::optional<value::Type::Kind> of = std::nullopt);
/// The offset of the last of a path of members, each found in the one before.
std::optional<std::uint64_t> offset_of(const value::Type &type, std::initializer_list<std::string_view> path);

/// Bytes that the address of a value is a multiple of.
std::uint64_t alignment_of(const value::Type &type);
std::uint64_t aligned(std::uint64_t offset, const value::Type &type);

/// The name of a class without its library's inner namespaces and without its arguments: `std::vector`; empty where it
/// is a member of such a class.
std::string family(const value::Type &type);
/// The number at the end of a template's arguments: `std::span<int, 3ul>`.
std::optional<std::uint64_t> last_number(std::string_view name);

class Writer {
  public:
    Writer(const value::Type &type, std::vector<Instr> &out, Surroundings &around)
        : type_(type), out_(out), around_(around) {}

    const value::Type &type() const { return type_; }
    /// The type that the template was made with; nullptr: it is not known.
    const value::Type *parameter(std::size_t n) {
        return n < type_.parameters.size() ? &around_.complete(*type_.parameters[n]) : nullptr;
    }
    const value::Type &complete(const value::Type &type) { return around_.complete(type); }

    DynamicTypes dynamic_types() { return around_.dynamic_types(type_); }

    void put(const Instr &instr) { out_.push_back(instr); }
    void put(Opcode op, std::int64_t imm = 0) { out_.push_back({.op = op, .imm = imm}); }
    void push(std::int64_t number) { put(Opcode::push, number); }
    void add(std::uint64_t number) {
        if (number != 0) put(Opcode::add_imm, static_cast<std::int64_t>(number));
    }
    /// The unsigned number at the address on top, `offset` behind it.
    void load(std::uint64_t offset, std::uint64_t size = 8) {
        add(offset);
        out_.push_back({.op = Opcode::load, .size = static_cast<std::uint8_t>(size)});
    }
    /// The same, on top of the address.
    void peek(std::uint64_t offset, std::uint64_t size = 8) {
        put(Opcode::dup);
        load(offset, size);
    }
    std::size_t jump(Opcode op) {
        put(op);
        return out_.size() - 1;
    }
    void land(std::size_t jump) {
        out_[jump].imm = static_cast<std::int64_t>(out_.size()) - static_cast<std::int64_t>(jump) - 1;
    }
    void jump_back(std::size_t to) {
        put(Opcode::jump, static_cast<std::int64_t>(to) - static_cast<std::int64_t>(here()) - 1);
    }
    std::size_t here() const { return out_.size(); }
    /// Takes the instructions from there on out.
    std::vector<Instr> aside(std::size_t from) {
        std::vector<Instr> taken(out_.begin() + static_cast<std::ptrdiff_t>(from), out_.end());
        out_.resize(from);
        return taken;
    }
    void next_in_tree(std::uint64_t left, std::uint64_t right, std::uint64_t up) {
        out_.push_back({.op = Opcode::next_in_tree, .index = static_cast<std::uint32_t>(left | right << 8 | up << 16)});
    }

    void begin(Form form) { begin(form, type_); }
    void begin(Form form, const value::Type &type) {
        out_.push_back({.op = Opcode::begin_group, .index = type.index, .imm = static_cast<std::int64_t>(form)});
    }
    void end() { put(Opcode::end_group); }
    void show(const value::Type &type) { around_.show(type); }
    void show_dynamic(const value::Type &type) { around_.show_dynamic(type); }
    /// Shows the top as a number.
    void show_number(bool is_signed) { put(is_signed ? Opcode::emit_sint : Opcode::emit_uint); }
    void show_address() { put(Opcode::emit_hex); }

    /// A top that is bad is shown in place of the contents; `depth`: slots of this printer, with it.
    void check(int depth) { failures_.emplace_back(jump(Opcode::jump_bad), depth); }
    /// The same of a count, also where it is too large to be one.
    void check_count(int depth);
    /// Where all that was checked and bad goes on. Nothing else of the printer's may stand behind.
    void finish();

    /// Replaces the address of a text by the text.
    void load_text(std::uint64_t most) { contents::load_text(type_, most, out_); }
    /// A loop: with a position and the count of elements on the stack, and what else `slots` has room for below.
    /// `show` writes the element of a copy of the position, which it takes off; `next` makes the position on top the
    /// next one. All of them are taken off in the end.
    template <class Show, class Next> void show_each(Form form, int slots, Show show, Next next) {
        begin(form);
        const std::size_t again = here();
        put(Opcode::dup);
        const std::size_t none_left = jump(Opcode::jump_false);
        put(Opcode::more);
        const std::size_t full = jump(Opcode::jump_false);
        put(Opcode::over);
        show();
        put(Opcode::add_imm, -1);
        put(Opcode::swap);
        next();
        put(Opcode::swap);
        jump_back(again);
        land(none_left);
        land(full);
        for (int n = 0; n < slots; ++n) put(Opcode::drop);
        end();
    }
    /// With the address of the first element and the count of elements on the stack: `[a, b, c]` of them.
    void show_sequence(const value::Type &element);

    /// The end of a printer: behind what is shown, `nothing` where `is_empty` jumps to, with an address on the stack.
    void finish_or_nothing(std::size_t is_empty);

  private:
    const value::Type &type_;
    std::vector<Instr> &out_;
    Surroundings &around_;
    std::vector<std::pair<std::size_t, int>> failures_;
};

} // namespace ktrace::program::contents
