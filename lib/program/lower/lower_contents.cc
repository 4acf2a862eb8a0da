// Lowering of objects that are shown by what they hold (program/contents).
#include "program/lower/lower.h"

#include <algorithm>
#include <utility>

#include "program/contents/contents.h"
#include "program/lower/types.h"

namespace ktrace::program {

namespace {

constexpr int deepest = 4;                 // objects that hold objects
constexpr std::size_t most_instrs = 16000; // of one value
constexpr std::uint64_t most_bytes = 512;  // of an object that has its parts behind it

} // namespace

class Lowering::Contents : public contents::Surroundings {
  public:
    explicit Contents(Lowering &lowering) : lowering_(lowering) {}

    const Type &complete(const Type &type) override {
        return type.incomplete || type.members.empty() ? *lowering_.scope_.complete(&type) : type;
    }
    void show(const Type &type) override { lowering_.show_part(type); }
    contents::DynamicTypes dynamic_types(const Type &type) override {
        contents::DynamicTypes known = lowering_.scope_.dynamic_types(type);
        if (lowering_.in_interface_) known.types.clear();
        return known;
    }
    void show_dynamic(const Type &type) override {
        const bool was = std::exchange(lowering_.in_interface_, true);
        lowering_.show_part(type);
        lowering_.in_interface_ = was;
    }

  private:
    Lowering &lowering_;
};

void Lowering::address_of_object(Operand &operand) {
    if (operand.where == Operand::Where::memory) return settle_address(operand);
    Type sized;
    sized.size = contents::size_of(*operand.type);
    Operand whole = operand;
    whole.type = &sized;
    object_of(whole);
    put(Opcode::object_address);
}

bool Lowering::show_contents(Operand &operand) {
    const Type &type = *operand.type;
    const bool is_known = contents::is_known(type);
    if (!in_table(type) || !(is_known || types::is_record(type) || type.kind == Type::Kind::array)) return false;
    Contents around(*this);
    const auto parts = is_known ? std::vector<contents::Part>() : contents::parts_of(around.complete(type), around);
    if (!is_known && (parts.empty() || type.size == 0)) return false;
    const std::size_t before = out_.size();
    Operand object = operand;
    address_of_object(object);
    held_in_++;
    bool is_shown = is_known;
    if (is_known) {
        is_shown = contents::show(type, out_, around);
    } else {
        is_shown = true;
        const auto size = static_cast<std::int64_t>(std::min(type.size, most_bytes));
        put({.op = Opcode::begin_group, .index = type.index, .imm = static_cast<std::int64_t>(Form::object)});
        put(Opcode::dup);
        put({.op = Opcode::emit_memory, .index = type.index, .imm = size});
        for (const contents::Part &part : parts) {
            const std::uint64_t at = part.virtual_at ? of_virtual_base : part.offset;
            const std::uint64_t key = at | std::uint64_t{part.type->index} << 32;
            put({.op = Opcode::push, .imm = static_cast<std::int64_t>(key)});
            put(Opcode::emit_uint);
            put(Opcode::dup);
            if (part.offset != 0) put({.op = Opcode::add_imm, .imm = static_cast<std::int64_t>(part.offset)});
            if (part.virtual_at) to_virtual_base(*part.virtual_at);
            show_part(*part.type);
        }
        put(Opcode::end_group);
        put(Opcode::drop);
    }
    held_in_--;
    if (!is_shown) out_.resize(before);
    return is_shown;
}

/// With the address of an object on the stack: that of its virtual base.
void Lowering::to_virtual_base(std::int64_t at) {
    put(Opcode::dup);
    put(Opcode::load);
    put({.op = Opcode::add_imm, .imm = at});
    put(Opcode::load);
    put(Opcode::add);
}

void Lowering::show_part(const Type &type) {
    const std::size_t before = out_.size();
    const bool is_compound = types::is_record(type) || type.kind == Type::Kind::array;
    if ((is_compound && held_in_ > deepest) || before > most_instrs) {
        put(Opcode::drop);
        put({.op = Opcode::emit_na, .imm = na_elided});
        return;
    }
    try {
        Expr nowhere;
        const Type &whole = type.incomplete ? *scope_.complete(&type) : type;
        show(nowhere, through_reference({.where = Operand::Where::memory, .type = &whole}), Style::print, false);
    } catch (const Misfit &) {
        out_.resize(before);
        put(Opcode::drop);
        put({.op = Opcode::push_unavailable, .imm = static_cast<std::int64_t>(unavailable_not_known)});
        put(Opcode::emit_hex);
    }
}

} // namespace ktrace::program
