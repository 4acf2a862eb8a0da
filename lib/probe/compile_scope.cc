#include "probe/compile_scope.h"

#include <algorithm>

#include "arch/host.h"
#include "base/check.h"
#include "base/text.h"
#include "probe/errno_place.h"
#include "probe/symbol_variable.h"
#include "probe/vector_places.h"
#include "program/lower/types.h"
#include "symbols/names/demangle.h"

namespace ktrace::probe {

using program::Binding;
using program::NamedBinding;
using symbols::Function;
using value::Piece;
using value::Place;
using value::Type;

/// At the first instruction of a function of the C library, and when it returns.
const prototypes::Prototype *LocationScope::prototype() {
    if (before_) return before_->prototype();
    if (!asked_prototype_ && location_.module && is_at_entry() && prototypes::is_c_library(location_.module->soname()))
        prototype_ = prototypes::prototype_named(location_.symbol);
    asked_prototype_ = true;
    return prototype_;
}

symbols::Dwarf *LocationScope::dwarf() {
    if (!asked_dwarf_ && location_.module) dwarf_ = location_.module->dwarf();
    asked_dwarf_ = true;
    return dwarf_;
}

const Function *LocationScope::described() {
    if (prototype()) return function_ = &prototype()->function;
    if (before_) {
        dwarf();
        function_ = before_->described();
        declarer_ = before_->declarer_;
        return function_;
    }
    if (!asked_function_ && dwarf())
        function_ =
            location_.inlined() ? dwarf_->inlined_function(location_.instance) : dwarf_->function_at(location_.vaddr);
    if (function_ && !function_->typed) function_ = nullptr;
    if (!asked_function_ && !function_) function_ = declared();
    asked_function_ = true;
    return function_;
}

/// As the program that calls it knows the function.
const Function *LocationScope::declared() {
    if (!is_at_entry() || location_.symbol.empty() || modules_.empty() || !modules_.front().is_program) return nullptr;
    if (modules_.front().module == location_.module) return nullptr;
    symbols::Dwarf *program = modules_.front().module->dwarf(symbols::DebugSource::local);
    const Function *found = program ? program->declared_function(location_.symbol) : nullptr;
    if (found) others_.push_back(declarer_ = program);
    return found;
}

Error LocationScope::no_dwarf() {
    std::string module = location_.module ? std::string(location_.module->name()) : "generated code";
    std::string why = location_.module ? location_.module->why_no_dwarf() : "";
    if (dwarf()) why = "that of " + location_.symbol + " has no types";
    return Error{Error::Kind::refused,
                 "no DWARF debug information for " + module + (why.empty() ? "" : ": " + why),
                 "arg0…arg9 and retval work without it",
                 {},
                 -1,
                 1};
}

bool LocationScope::is_at_entry() {
    if (location_.inlined()) return false;
    if (entry_probe_) return true;
    if (location_.function != 0) return location_.function == location_.vaddr;
    return location_.offset == 0 && !location_.symbol.empty();
}

/// True in the first line-table row of the function: unoptimized code there moves its arguments to their places in the
/// debug information.
bool LocationScope::is_in_prologue() {
    const Function *function = described();
    if (!function || prototype() || declarer_ || location_.inlined()) return false;
    auto here = dwarf_->line_at(location_.vaddr), first = dwarf_->line_at(function->entry);
    return here && first && here->vaddr == first->vaddr;
}

/// The pointer to a text and its length, as a value of types::counted_text has them.
static Place text_place(const Place &text, const Place &length) {
    if (text.pieces.size() != 1 || length.pieces.size() != 1) return text;
    Place place;
    place.pieces = {text.pieces[0], length.pieces[0]};
    if (text.pieces[0].kind == Piece::Kind::memory) place.pieces[0].kind = Piece::Kind::value; // its address
    for (Piece &piece : place.pieces) piece.size = 8;
    return place;
}

/// clang describes the parts of a coroutine with the parameters of the whole: they have them in memory of their own.
static bool is_part_of_coroutine(const Location &location) {
    const symbols::Symbol *symbol = location.module ? location.module->covering(location.vaddr) : nullptr;
    return symbol && symbols::split_clone(symbol->name).of_coroutine;
}

/// At a function's first instruction: a location list that covers it, else the calling convention.
void LocationScope::find_places() {
    if (has_places_ || !described()) return;
    has_places_ = true;
    std::vector<const Type *> passed;
    for (const symbols::Parameter &p : function_->parameters)
        if (!p.dropped) passed.push_back(p.type && !p.by_reference ? p.type : &program::types::int64);
    const Type *result = function_->result ? function_->result : &program::types::void_type;
    std::vector<Place> convention = arch::Host::parameter_places(passed, result);
    std::vector<Place> registers = convention;
    if (function_->result) registers.push_back(arch::Host::result_place(result));
    if (is_vector_doubtful(location_, registers)) convention.clear();
    std::vector<std::optional<Place>> told;
    if (!prototype() && !declarer_) told = dwarf_->entry_places(*function_, bias_);
    std::size_t next = 0;
    const bool is_part = is_part_of_coroutine(location_);
    for (std::size_t i = 0; i < function_->parameters.size(); ++i) {
        const symbols::Parameter &p = function_->parameters[i];
        Place place = p.dropped ? Place::unavailable("`" + p.name + "` is optimized out")
                                : Place::not_known("where `" + p.name + "` is passed is not known");
        if (!p.dropped) {
            if (!function_->own_convention && next < convention.size() && (!is_part || p.name == "frame_ptr"))
                place = p.by_reference ? convention[next].pointed_to() : convention[next];
            ++next;
        }
        if (i < told.size() && told[i]) place = *told[i];
        const bool has_descriptor = p.by_reference && !p.length && p.type && p.type->size == 0;
        if (p.promoted) place = Place::not_known("`" + p.name + "` is passed as a double");
        if (has_descriptor) place = Place::not_known("`" + p.name + "` has its bounds in a descriptor");
        places_.push_back(std::move(place));
    }
    for (std::size_t i = 0; i < places_.size(); ++i)
        if (auto length = function_->parameters[i].length) places_[i] = text_place(places_[i], places_[*length]);
}

const Type *LocationScope::type_of_parameter(std::size_t i) const {
    const symbols::Parameter &parameter = function_->parameters[i];
    return parameter.length ? &program::types::counted_text : parameter.type;
}

namespace {

std::string parameter_names(const Function &function) {
    std::string names;
    for (const symbols::Parameter &p : function.parameters)
        if (!p.name.empty()) names += (names.empty() ? "" : ", ") + p.name;
    return names.empty() ? "it has no parameters" : "its parameters are " + names;
}

std::string shown_name(const Location &location, const Function &function) {
    return location.symbol.empty() ? function.name : location.symbol;
}

/// True where all of the value lies in registers, whatever the stack pointer is.
bool in_registers(const Place &place) {
    for (const Piece &piece : place.pieces)
        if (piece.kind != Piece::Kind::register_) return false;
    return !place.pieces.empty();
}

/// True where the place is the same at every instruction: no register and no frame is part of it.
bool is_fixed(const Place &place) {
    for (const Piece &piece : place.pieces) {
        if (piece.kind != Piece::Kind::memory && piece.kind != Piece::Kind::bytes) return false;
        for (const value::Op &op : piece.ops)
            if (op.code == value::Op::Code::push_register || op.code == value::Op::Code::entry_register) return false;
    }
    return true;
}

} // namespace

Result<Binding> LocationScope::argument(std::string_view name) {
    const Function *function = described();
    if (!function && !dwarf()) return fail(no_dwarf());
    if (!function)
        return fail(Error::Kind::refused, "the debug information does not describe " + location_.symbol,
                    "arg0…arg9 and retval work without it");
    for (std::size_t i = 0; i < function->parameters.size(); ++i) {
        if (function->parameters[i].name != name) continue;
        if (location_.inlined()) return variable_here(name);
        const Type *type = function->parameters[i].type;
        find_places();
        if (is_at_entry()) return Binding{type_of_parameter(i), places_[i]};
        if (instant_ == Instant::before && in_registers(places_[i]) && is_in_prologue()) {
            auto here = dwarf_->variable(name, location_.vaddr, bias_, location_.instance);
            if (!here || !in_registers(here->place)) return Binding{type, places_[i]};
        }
        return variable_here(name);
    }
    return fail(Error::Kind::refused,
                shown_name(location_, *function) + " has no parameter `" + std::string(name) + "`",
                parameter_names(*function));
}

Result<Binding> LocationScope::variable_here(std::string_view name) {
    if (!dwarf()) return fail(no_dwarf());
    auto found = dwarf_->variable(name, location_.vaddr, bias_, location_.instance);
    if (!found) return fail(found.error());
    return Binding{found->type, std::move(found->place)};
}

/// Places each thread-local variable's block, where it is known: of the program itself.
Result<Binding> LocationScope::in_thread(Binding binding, std::string_view name) {
    for (Piece &piece : binding.place.pieces)
        for (value::Op &op : piece.ops) {
            if (op.code != value::Op::Code::tls) continue;
            auto block = location_.module->program_tls();
            if (!block)
                return fail(Error::Kind::refused,
                            "`" + std::string(name) +
                                "` is a thread-local variable of a library: where a thread has it "
                                "is not known",
                            "a register or argument that points to it can be printed");
            op.operand = *block;
        }
    return binding;
}

Result<Binding> LocationScope::variable(std::string_view name) {
    auto by_symbol = [&](const Error &unknown) -> Result<Binding> {
        auto known = symbol_variable(name, {location_.module, bias_, false}, modules_);
        return known ? Result<Binding>(std::move(*known)) : fail(unknown);
    };
    if (!dwarf()) return by_symbol(no_dwarf());
    auto found = dwarf_->variable(name, location_.vaddr, bias_, location_.instance);
    if (instant_ == Instant::at_return && found && !is_fixed(found->place))
        return fail(Error::Kind::refused, "`" + std::string(name) + "` is a local variable: it is gone at the return",
                    "place a probe at a line where it lives: -k FILE:LINE");
    if (found) return in_thread({found->type, std::move(found->place)}, name);
    auto global = dwarf_->global(name, bias_);
    if (global) return in_thread({global->type, std::move(global->place)}, name);
    return by_symbol(found.error());
}

namespace {

bool same_place(const Place &a, const Place &b) {
    if (a.pieces.size() != 1 || b.pieces.size() != 1) return false;
    const Piece &p = a.pieces[0], &q = b.pieces[0];
    if (p.kind != q.kind || p.ops.size() != q.ops.size()) return false;
    if (p.kind == Piece::Kind::register_) return p.reg == q.reg && p.reg_offset == q.reg_offset;
    if (p.kind != Piece::Kind::memory) return false;
    for (std::size_t i = 0; i < p.ops.size(); ++i)
        if (p.ops[i].code != q.ops[i].code || p.ops[i].reg != q.ops[i].reg || p.ops[i].operand != q.ops[i].operand)
            return false;
    return true;
}

} // namespace

Result<Binding> LocationScope::integer_argument(unsigned n) {
    std::vector<const Type *> integers(n + 1, &program::types::int64);
    std::vector<Place> places = arch::Host::parameter_places(integers, &program::types::void_type);
    Binding binding{nullptr, places.at(n)};
    if (!in_registers(binding.place) && !is_at_entry())
        return fail(Error::Kind::refused,
                    "arg" + std::to_string(n) + " is on the stack: it is known only at a function's first instruction");
    if (instant_ == Instant::at_return)
        return fail(Error::Kind::refused, "arg" + std::to_string(n) + " is known only at the entry");
    if (instant_ == Instant::before && !location_.inlined() && described()) {
        find_places();
        for (std::size_t i = 0; i < places_.size(); ++i) {
            const Type *type = function_->parameters[i].type;
            if (type && program::types::is_scalar(*type) && same_place(places_[i], binding.place)) binding.type = type;
        }
    }
    return binding;
}

Result<Binding> LocationScope::parameter(std::string_view name, std::string &shown) {
    shown = std::string(name);
    auto number = text::parse_u64(name);
    if (!number) return argument(name);
    shown = "arg" + shown;
    if (location_.inlined() || !described())
        return integer_argument(static_cast<unsigned>(std::min<std::uint64_t>(*number, 9)));
    const auto &parameters = function_->parameters;
    if (*number >= parameters.size())
        return fail(Error::Kind::refused,
                    shown_name(location_, *function_) + " has no parameter number " + std::to_string(*number),
                    parameter_names(*function_));
    if (!parameters[*number].name.empty()) {
        shown = parameters[*number].name;
        return argument(shown);
    }
    find_places();
    return Binding{type_of_parameter(*number), places_[*number]};
}

/// All results of a Go function as one object, each from a multiple of 8 bytes on.
static Place place_of_results(const Function &function) {
    std::vector<Place> places = arch::Host::go_result_places(function.results);
    Place all;
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (const std::uint64_t gap = (8 - end % 8) % 8; gap != 0) {
            Piece &padding = all.pieces.emplace_back();
            padding.kind = Piece::Kind::bytes;
            padding.size = static_cast<std::uint32_t>(gap);
            padding.bytes.resize(gap);
            end += gap;
        }
        for (Piece &piece : places[i].pieces) {
            end += piece.size;
            all.pieces.push_back(std::move(piece));
        }
    }
    if (places.size() == 1) all.why = places[0].why;
    return all;
}

std::optional<Binding> LocationScope::result() {
    if (!described()) return Binding{nullptr, arch::Host::result_place(&program::types::int64)};
    const Type *type = function_->result;
    if (!type || type->kind == Type::Kind::void_) return std::nullopt;
    if (!function_->result_known) return Binding{type, Place::not_known("where it is returned is not known")};
    if (!function_->results.empty()) return Binding{type, place_of_results(*function_)};
    const Place place = arch::Host::result_place(type);
    if (is_vector_doubtful(location_, std::span(&place, 1)))
        return Binding{type, Place::not_known("where such a vector is returned is not known")};
    return Binding{type, place};
}

Result<Binding> LocationScope::retval() {
    if (instant_ != Instant::at_return)
        return fail(Error::Kind::refused, "only a return probe knows retval", "place it with -r");
    std::optional<Binding> binding = result();
    if (!binding) return fail(Error::Kind::refused, location_.symbol + " returns nothing: it is void");
    return std::move(*binding);
}

Result<Binding> LocationScope::error_number() { return errno_place(modules_, memory_); }

const Type *LocationScope::complete(const Type *type) {
    if (!type) return type;
    if (prototype() && type->incomplete && type == &prototypes::types().at(type->index)) {
        const Type *defined = type_named(type->name);
        return defined ? defined : type;
    }
    if (dwarf_) type = dwarf_->complete(type);
    for (symbols::Dwarf *other : others_) type = other->complete(type); // a stranger's type stays as it is
    return type;
}

/// Among the types that were read so far: the function's own mean more than others of the same name.
const Type *LocationScope::type_at_hand(std::string_view name) {
    described(); // reads the types of its unit that it uses
    const value::TypeTable &table = dwarf_->types();
    const Type *declared = nullptr;
    for (std::uint32_t i = 0; i < table.size(); ++i) {
        const Type &type = table.at(i);
        std::string_view known = type.name;
        std::size_t tag = known.find(' ');
        bool tagged = program::types::is_record(type) || type.kind == Type::Kind::enumeration;
        bool named = known == name || (tagged && tag != known.npos && known.substr(tag + 1) == name) ||
                     (tagged && name.find(' ') != name.npos && name.substr(name.find(' ') + 1) == known);
        if (!named) continue;
        declared = &type;
        if (!type.incomplete) return &type;
    }
    return declared ? dwarf_->complete(declared) : nullptr;
}

/// In the debug information of the process's other modules that is on this machine.
const Type *LocationScope::type_elsewhere(std::string_view name) {
    for (const Loaded &loaded : modules_) {
        symbols::Dwarf *other = loaded.module->dwarf(symbols::DebugSource::local);
        if (!other || other == dwarf_) continue;
        const Type *type = other->type_named(name);
        if (!type || type->incomplete) continue;
        if (std::find(others_.begin(), others_.end(), other) == others_.end()) others_.push_back(other);
        return type;
    }
    return nullptr;
}

const Type *LocationScope::type_named(std::string_view name) {
    const Type *declared = nullptr;
    if (dwarf()) {
        declared = type_at_hand(name);
        if (declared && !declared->incomplete) return declared;
        const Type *defined = dwarf_->type_named(name);
        if (defined && !defined->incomplete) return defined;
        if (!declared) declared = defined;
    }
    const Type *defined = type_elsewhere(name);
    return defined ? defined : declared;
}

namespace {

/// `hi`, `Level::hi`, `ns::Level::hi`, and of an enumeration of C's style `ns::hi`.
bool is_enumerator(const Type &type, const value::Enumerator &each, std::string_view name) {
    if (each.name == name) return true;
    const std::size_t at = name.rfind("::");
    if (at == name.npos || name.substr(at + 2) != each.name) return false;
    auto ends_in = [](std::string_view whole, std::string_view part) {
        if (!whole.ends_with(part)) return false;
        whole.remove_suffix(part.size());
        return whole.empty() || whole.ends_with("::") || whole == "enum ";
    };
    const std::string_view of = name.substr(0, at), known = type.name;
    const std::size_t scope = known.rfind("::");
    return ends_in(known, of) || (scope != known.npos && ends_in(known.substr(0, scope), of));
}

std::optional<program::EnumeratorValue> enumerator_in(const value::TypeTable &table, std::string_view name) {
    std::optional<program::EnumeratorValue> found;
    for (std::uint32_t i = 0; i < table.size(); ++i)
        for (const value::Enumerator &e : table.at(i).enumerators) {
            if (!is_enumerator(table.at(i), e, name)) continue;
            if (found && found->value != e.value) return std::nullopt; // ambiguous
            found = program::EnumeratorValue{&table.at(i), e.value};
        }
    return found;
}

} // namespace

std::optional<program::EnumeratorValue> LocationScope::enumerator(std::string_view name) {
    if (prototype())
        if (auto known = enumerator_in(prototypes::types(), name)) return known;
    described();
    if (declarer_)
        if (auto known = enumerator_in(declarer_->types(), name)) return known;
    return dwarf() ? enumerator_in(dwarf_->types(), name) : std::nullopt;
}

std::vector<NamedBinding> LocationScope::arguments() {
    std::vector<NamedBinding> all;
    if (!described()) {
        if (location_.inlined()) return all;
        std::vector<const Type *> integers(6, &program::types::int64);
        for (Place &place : arch::Host::parameter_places(integers, &program::types::void_type))
            all.push_back({"arg" + std::to_string(all.size()), {nullptr, std::move(place)}, true});
        return all;
    }
    for (std::size_t i = 0; i < function_->parameters.size(); ++i) {
        const symbols::Parameter &p = function_->parameters[i];
        if (p.is_length) continue;
        std::string name = p.name.empty() ? "arg" + std::to_string(i) : p.name;
        NamedBinding argument{name, {p.type, Place::unavailable("it is optimized out")}, is_only_declared(p.type)};
        if (location_.inlined()) {
            if (auto found = variable_here(p.name)) argument.binding = std::move(*found);
        } else {
            find_places();
            argument.binding = {type_of_parameter(i), places_[i]};
        }
        all.push_back(std::move(argument));
    }
    if (prototype()) add_buffers(all);
    return all;
}

bool LocationScope::is_only_declared(const Type *pointer) {
    return prototype() && pointer && pointer->target && pointer->target->incomplete;
}

/// Of a text that is written and returned, the result shows it.
void LocationScope::add_buffers(std::vector<NamedBinding> &arguments) {
    for (const prototypes::Buffer &buffer : prototype()->buffers) {
        NamedBinding &argument = arguments[buffer.parameter];
        argument.hex = true;
        argument.at_return = buffer.is_written;
        const std::string pointer = "args." + argument.name;
        if (!buffer.length.empty())
            argument.shown = tree_of("buf(" + pointer + ", " + buffer.length + ")");
        else if (!prototype()->function.result || !program::types::is_pointer(*prototype()->function.result))
            argument.shown = tree_of(pointer + " ? str(" + pointer + ") : \"\"");
    }
}

const program::Tree *LocationScope::tree_of(std::string_view text) {
    auto tree = program::parse_expr(text);
    KT_CHECK(tree);
    return &trees_.emplace_back(std::move(*tree));
}

const program::Tree *LocationScope::error_of_result() {
    if (!prototype() || !prototype()->sets_errno || !prototype()->function.result || !error_number()) return nullptr;
    const bool is_pointer = program::types::is_pointer(*prototype()->function.result);
    return tree_of(is_pointer ? "(uint64)retval + 1 <= 1 ? errno : 0" : "retval == -1 ? errno : 0");
}

} // namespace ktrace::probe
