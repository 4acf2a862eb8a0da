// Go's interfaces: the name and the value of what one holds, `main.Circle{.R=1.5}`, `int(42)`.
//
// The first word of an interface is a type's descriptor, or a table that has it; the second one the value, where that
// is a pointer, else its address. The descriptor has the type's name and its kind: enough for numbers and texts.
// Structures and sequences need the type as the debug information has it, and code of their own, so the likely ones
// have that, and pointers to them.
#include <algorithm>
#include <utility>

#include "program/contents/printers.h"

namespace ktrace::program::contents {

using value::Type;

namespace {

// abi.Type (runtime._type before Go 1.20): the same in all versions since 1.7.
constexpr std::uint64_t flags_at = 20, kind_at = 23, name_at = 40, element_at = 48, type_in_table = 8;
constexpr std::int64_t has_extra_star = 2, kind_bits = 31;
constexpr std::int64_t most_name = 200;

constexpr std::size_t most_code = 4000; // instructions that show what the parts of structures hold, for all types
constexpr std::size_t most_of_type = 800;
constexpr std::uint64_t most_bytes = 512;

enum Kind : std::int64_t { is_bool = 1, is_float32 = 13, is_float64 = 14, is_pointer = 22, is_string = 24 };
struct IntegerKind {
    std::int64_t kind;
    std::uint8_t size;
    bool is_signed;
};
constexpr IntegerKind integer_kinds[] = {{2, 8, true},   {3, 1, true},   {4, 2, true},  {5, 4, true},
                                         {6, 8, true},   {7, 8, false},  {8, 1, false}, {9, 2, false},
                                         {10, 4, false}, {11, 8, false}, {12, 8, false}};

/// A value that is a single pointer lies in the interface itself.
bool is_direct(const Type &type, int depth = 8) {
    switch (type.kind) {
    case Type::Kind::pointer:
    case Type::Kind::function: return true;
    case Type::Kind::structure:
        return depth != 0 && type.members.size() == 1 && type.members[0].type &&
               is_direct(*type.members[0].type, depth - 1);
    case Type::Kind::array: return depth != 0 && type.count == 1 && type.target && is_direct(*type.target, depth - 1);
    default: return false;
    }
}

/// The code of one interface, whose address and whose descriptor's are on the stack.
class Interface {
  public:
    Interface(Writer &w, const DynamicTypes &known, std::uint64_t data) : w_(w), known_(known), data_(data) {}

    void show_held();

  private:
    struct Case {
        std::uint64_t descriptor;
        std::vector<Instr> code;
    };

    void show_name();
    void load_kind();
    void load_known();
    std::vector<Case> cases();
    void choose(const std::vector<Case> &cases, std::size_t first, std::size_t last);
    void show_as(const Type &type, bool by_contents);
    void show_by_kind();
    std::size_t skip_unless(std::int64_t kind);
    void finish_case() { done_.push_back(w_.jump(Opcode::jump)); }

    Writer &w_;
    const DynamicTypes &known_;
    std::uint64_t data_;
    std::vector<std::size_t> others_, done_; // jumps: it is none of these; it has been shown
};

/// A byte of flags, the length in 7 bits a byte, the text.
void Interface::show_name() {
    w_.put(Opcode::dup);
    w_.add(name_at);
    w_.put({.op = Opcode::load, .size = 4, .is_signed = true});
    w_.add(known_.begin);
    w_.peek(1, 1);
    w_.put(Opcode::dup);
    w_.push(128);
    w_.put(Opcode::lt_u);
    const std::size_t is_long = w_.jump(Opcode::jump_false);
    w_.put(Opcode::swap);
    w_.add(2);
    const std::size_t has_length = w_.jump(Opcode::jump);
    w_.land(is_long);
    w_.push(127);
    w_.put(Opcode::bit_and);
    w_.put(Opcode::over);
    w_.load(2, 1);
    w_.push(7);
    w_.put(Opcode::shl);
    w_.put(Opcode::bit_or);
    w_.put(Opcode::swap);
    w_.add(3);
    w_.land(has_length);
    w_.put(Opcode::swap); // the text, its length
    w_.put(Opcode::pick, 2);
    w_.load(flags_at, 1);
    w_.push(has_extra_star);
    w_.put(Opcode::bit_and);
    const std::size_t is_whole = w_.jump(Opcode::jump_false);
    w_.put(Opcode::add_imm, -1);
    w_.put(Opcode::swap);
    w_.add(1);
    w_.put(Opcode::swap);
    w_.land(is_whole);
    w_.put(Opcode::counted_text, most_name);
    w_.put(Opcode::emit_text);
}

/// With the descriptor below the top: its kind on top.
void Interface::load_kind() {
    w_.put(Opcode::over);
    w_.load(kind_at, 1);
    w_.push(kind_bits);
    w_.put(Opcode::bit_and);
}

/// With the descriptor below the second word: on top the descriptor of what lies where that points.
void Interface::load_known() {
    load_kind();
    w_.push(is_pointer);
    w_.put(Opcode::eq);
    const std::size_t is_itself = w_.jump(Opcode::jump_false);
    w_.put(Opcode::over);
    w_.load(element_at);
    const std::size_t done = w_.jump(Opcode::jump);
    w_.land(is_itself);
    w_.put(Opcode::over);
    w_.land(done);
}

/// With what load_known leaves: takes that and the second word off. Without its contents the value is shown by its
/// bytes alone.
void Interface::show_as(const Type &type, bool by_contents) {
    if (is_direct(type)) {
        w_.put(Opcode::pick, 2);
        w_.put(Opcode::eq);
        const std::size_t is_behind_pointer = w_.jump(Opcode::jump_false);
        w_.put(Opcode::drop);
        w_.put(Opcode::over);
        w_.add(data_);
        w_.land(is_behind_pointer);
    } else {
        w_.put(Opcode::drop);
    }
    if (by_contents) return w_.show_dynamic(type);
    const auto size = static_cast<std::int64_t>(std::min(type.size, most_bytes));
    w_.put({.op = Opcode::emit_memory, .index = type.index, .imm = size});
}

/// The likely types, by descriptor.
std::vector<Interface::Case> Interface::cases() {
    std::vector<Case> all;
    std::size_t size = 0;
    for (const DynamicType &each : known_.types) {
        const Type &type = w_.complete(*each.type);
        const std::size_t before = w_.here();
        show_as(type, true);
        std::vector<Instr> code = w_.aside(before);
        if (code.size() > most_of_type || size + code.size() > most_code) {
            show_as(type, false);
            code = w_.aside(before);
        } else {
            size += code.size();
        }
        all.push_back({each.descriptor, std::move(code)});
    }
    std::sort(all.begin(), all.end(), [](const Case &a, const Case &b) { return a.descriptor < b.descriptor; });
    return all;
}

/// By halves.
void Interface::choose(const std::vector<Case> &cases, std::size_t first, std::size_t last) {
    w_.put(Opcode::dup);
    if (last - first == 1) {
        w_.push(static_cast<std::int64_t>(cases[first].descriptor));
        w_.put(Opcode::eq);
        others_.push_back(w_.jump(Opcode::jump_false));
        for (const Instr &instr : cases[first].code) w_.put(instr);
        return finish_case();
    }
    const std::size_t middle = first + (last - first) / 2;
    w_.push(static_cast<std::int64_t>(cases[middle].descriptor));
    w_.put(Opcode::lt_u);
    const std::size_t is_above = w_.jump(Opcode::jump_false);
    choose(cases, first, middle);
    w_.land(is_above);
    choose(cases, middle, last);
}

std::size_t Interface::skip_unless(std::int64_t kind) {
    w_.put(Opcode::dup);
    w_.push(kind);
    w_.put(Opcode::eq);
    const std::size_t skip = w_.jump(Opcode::jump_false);
    w_.put(Opcode::drop);
    return skip;
}

/// With the second word on the descriptor: takes it off. Another kind is shown by the address.
void Interface::show_by_kind() {
    load_kind();
    for (const IntegerKind &each : integer_kinds) {
        const std::size_t skip = skip_unless(each.kind);
        w_.put({.op = Opcode::load, .size = each.size, .is_signed = each.is_signed});
        w_.show_number(each.is_signed);
        finish_case();
        w_.land(skip);
    }
    for (const std::int64_t kind : {is_float32, is_float64}) {
        const std::size_t skip = skip_unless(kind);
        w_.put({.op = Opcode::load_float, .size = static_cast<std::uint8_t>(kind == is_float32 ? 4 : 8)});
        w_.put(Opcode::emit_floating);
        finish_case();
        w_.land(skip);
    }
    std::size_t skip = skip_unless(is_bool);
    w_.load(0, 1);
    w_.put(Opcode::emit_boolean);
    finish_case();
    w_.land(skip);
    skip = skip_unless(is_string);
    w_.peek(0);
    w_.put(Opcode::swap);
    w_.load(8);
    w_.put(Opcode::counted_text, default_str);
    w_.put(Opcode::emit_text);
    finish_case();
    w_.land(skip);
    w_.put(Opcode::drop);
    w_.show_address();
}

void Interface::show_held() {
    w_.begin(Form::named);
    show_name();
    w_.put(Opcode::over);
    w_.load(data_);
    w_.put(Opcode::dup);
    const std::size_t is_null = w_.jump(Opcode::jump_false);
    if (const std::vector<Case> all = cases(); !all.empty()) {
        load_known();
        choose(all, 0, all.size());
        for (std::size_t each : others_) w_.land(each);
        w_.put(Opcode::drop);
    }
    show_by_kind();
    finish_case();
    w_.land(is_null);
    w_.put(Opcode::drop);
    w_.begin(Form::nothing);
    w_.end();
    for (std::size_t each : done_) w_.land(each);
    w_.put(Opcode::drop);
    w_.put(Opcode::drop);
    w_.end();
}

} // namespace

/// One of no type is nil. Where nothing is known of the process's types, it is shown by the address of its value.
bool show_interface(Writer &w) {
    const auto table = find(w.type(), "tab"), of = table ? table : find(w.type(), "_type"),
               data = find(w.type(), "data");
    if (!of || !data) return false;
    const DynamicTypes known = w.dynamic_types();
    w.peek(of->offset);
    w.check(2);
    w.put(Opcode::dup);
    const std::size_t is_nil = w.jump(Opcode::jump_false);
    if (table) {
        w.load(type_in_table);
        w.check(2);
    }
    w.put(Opcode::over);
    w.load(data->offset);
    w.check(3);
    w.put(Opcode::drop);
    w.put(Opcode::dup); // a descriptor that the program did not make when it was linked
    w.push(static_cast<std::int64_t>(known.begin));
    w.put(Opcode::swap);
    w.put(Opcode::le_u);
    const std::size_t is_below = w.jump(Opcode::jump_false);
    w.put(Opcode::dup);
    w.push(static_cast<std::int64_t>(known.end));
    w.put(Opcode::lt_u);
    const std::size_t is_above = w.jump(Opcode::jump_false);
    Interface(w, known, data->offset).show_held();
    const std::size_t done = w.jump(Opcode::jump);
    w.land(is_below);
    w.land(is_above);
    w.put(Opcode::drop);
    w.load(data->offset);
    w.show_address();
    const std::size_t is_shown = w.jump(Opcode::jump);
    w.land(is_nil);
    w.put(Opcode::drop);
    w.put(Opcode::drop);
    w.begin(Form::nothing);
    w.end();
    w.land(done);
    w.land(is_shown);
    w.finish();
    return true;
}

} // namespace ktrace::program::contents
