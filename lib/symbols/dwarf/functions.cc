// Functions and their parameters (dwarf.h): function_at, functions_named, entry_places.
#include "symbols/dwarf/internal.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "symbols/dwarf/rust.h"
#include "symbols/names/demangle.h"
#include "symbols/names/name_pattern.h"

namespace ktrace::symbols {

namespace {

/// One parameter of a function: its DIE in the concrete instance, or where only the abstract one has it, there.
struct ParameterDie {
    Declared declared;
    bool dropped = false;
};

/// Go lists results among the parameters, marked so.
bool is_result(Dwarf_Die die) { return tag(die) == DW_TAG_formal_parameter && flag(die, DW_AT_variable_parameter); }

bool is_parameter(Dwarf_Die die) { return tag(die) == DW_TAG_formal_parameter && !is_result(die); }

/// True for Go that passes values in registers of its own (1.17 and later).
bool has_registers_of_go(Units &units, Dwarf_Die function) {
    if (units.language(function) != DW_LANG_Go) return false;
    return text(units.of(function).skeleton, DW_AT_producer).find("regabi") != std::string_view::npos;
}

std::vector<ParameterDie> own_parameters(Dwarf_Die function) {
    std::vector<ParameterDie> own;
    for (Declared &declared : declared_in(function))
        if (is_parameter(declared.die)) own.push_back({std::move(declared), false});
    return own;
}

bool is_variadic(Dwarf_Die function) {
    auto below = children(function);
    return std::any_of(below.begin(), below.end(),
                       [](Dwarf_Die child) { return tag(child) == DW_TAG_unspecified_parameters; });
}

/// The parameters in the order of the source. An optimized copy (.isra, .constprop) may lack some that its abstract
/// instance has.
std::vector<ParameterDie> parameters_of(Dwarf_Die function) {
    auto concrete = own_parameters(function);
    Dwarf_Die abstract = abstract_instance(function);
    if (abstract.addr == function.addr) return concrete;
    auto all = own_parameters(abstract);
    for (ParameterDie &parameter : all) parameter.dropped = true;
    for (ParameterDie &parameter : concrete) {
        Dwarf_Die origin = abstract_instance(parameter.declared.die);
        auto source = std::find_if(all.begin(), all.end(),
                                   [&](const ParameterDie &p) { return p.declared.die.addr == origin.addr; });
        if (source == all.end()) {
            all.push_back(std::move(parameter));
        } else {
            source->declared.die = parameter.declared.die;
            source->dropped = false;
        }
    }
    // A parameter that constructors and destructors have in the abstract only (`__in_chrg`) is passed by no caller.
    std::erase_if(all, [](const ParameterDie &p) { return p.dropped && flag(p.declared.die, DW_AT_artificial); });
    return all;
}

/// How many parameters a demangled signature has in its last parentheses, nullopt where it is not plain to see.
std::optional<std::size_t> count_parameters(std::string_view signature) {
    std::size_t close = signature.rfind(')');
    if (close == std::string_view::npos) return std::nullopt;
    std::size_t count = 1;
    int depth = 0;
    for (std::size_t i = close + 1; i-- > 0;) {
        char c = signature[i];
        if (c == ')' || c == '>' || c == ']' || c == '}') ++depth;
        if (c == ',' && depth == 1) ++count;
        if (c != '(' && c != '<' && c != '[' && c != '{') continue;
        if (--depth > 0) continue;
        if (c != '(' || (i > 0 && signature[i - 1] == ')')) return std::nullopt; // returns a pointer to a function
        std::string_view list = signature.substr(i + 1, close - i - 1);
        if (list.empty() || list == "void" || list == "...") return 0;
        return count - (list.ends_with(", ...") ? 1 : 0);
    }
    return std::nullopt;
}

/// True where the source has more parameters than the DIEs: clang at -O0 leaves some out that it has no place for.
/// The declaration in the class says how many there are, else the mangled name.
bool lacks_parameters(Dwarf_Die function, const std::string &linkage, std::size_t told) {
    auto declared = reference(abstract_instance(function), DW_AT_specification);
    if (declared) {
        auto own = own_parameters(*declared);
        auto real = [](const ParameterDie &parameter) { return !flag(parameter.declared.die, DW_AT_artificial); };
        return static_cast<std::size_t>(std::count_if(own.begin(), own.end(), real)) > told;
    }
    if (!linkage.starts_with("_Z")) return false;
    auto signature = demangle(linkage, Spelling::signature);
    auto count = signature ? count_parameters(*signature) : std::nullopt;
    return count && *count > told;
}

/// True where a language's functions are called in a way of its own, whatever they take: Go has its own registers and
/// puts the rest on the stack; gcc's Go does as C. Go's compiler says where a parameter is from the first instruction
/// on. Rust's: dwarf_rust.h.
bool has_own_convention(Units &units, Dwarf_Die function) {
    auto language = units.language(function);
    if (language != DW_LANG_Go) return language == DW_LANG_Rust;
    return !text(units.of(function).skeleton, DW_AT_producer).starts_with("GNU ");
}

/// True where the compiler says that callers do not keep the calling convention (LLVM marks changed signatures so), or
/// names another one (Windows', vectorcall).
bool has_own_convention(Dwarf_Die function) {
    const auto convention = inherited_number(function, DW_AT_calling_convention).value_or(DW_CC_normal);
    return convention != DW_CC_normal && convention != DW_CC_program;
}

/// True where a function of C has no prototype (K&R): a float is passed as a double.
bool is_promoted(Units &units, Dwarf_Die function, const value::Type *parameter) {
    return parameter != nullptr && parameter->kind == value::Type::Kind::floating && parameter->size == 4 &&
           units.is_c(function) && !inherited_flag(function, DW_AT_prototyped);
}

/// True where a language's parameters may be passed by their address with nothing in their types that says so.
bool passes_addresses(Units &units, Dwarf_Die function) {
    auto language = units.language(function);
    return is_fortran(language) || language == DW_LANG_Ada83 || language == DW_LANG_Ada95 ||
           language == DW_LANG_Pascal83;
}

/// The texts of Fortran have their lengths behind all parameters: `s` that in `_s`.
void join_lengths(std::vector<Parameter> &parameters) {
    for (Parameter &text : parameters) {
        if (!text.by_reference || text.type == nullptr || text.type->name != "character(len=*)") continue;
        auto length = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter &each) {
            return each.artificial && each.name == "_" + text.name;
        });
        if (length == parameters.end()) continue;
        length->is_length = true;
        text.length = static_cast<std::size_t>(length - parameters.begin());
    }
}

/// True where code was optimized, as far as can be known: gcc says how it was called; for others, parameters that are
/// not all in memory.
bool is_optimized(Dwarf_Die unit, const std::vector<Dwarf_Die> &parameters) {
    std::string_view producer = text(unit, DW_AT_producer);
    if (producer.starts_with("GNU "))
        return producer.find(" -O") != std::string_view::npos && producer.find(" -O0") == std::string_view::npos;
    return !std::all_of(parameters.begin(), parameters.end(), [](Dwarf_Die die) { return lives_in_memory(die); });
}

/// True for copies that optimizers make of a function, and functions that only their unit calls.
bool may_change_signature(Dwarf_Die function) {
    return attribute(function, DW_AT_abstract_origin).has_value() || !inherited_flag(function, DW_AT_external);
}

} // namespace

/// True where a parameter is a constant, or nothing is known of it at the entry: a sign that callers do not pass it.
bool Dwarf::Impl::hides_parameters(const Known &known_function) {
    for (std::size_t i = 0; i < known_function.parameters.size(); ++i) {
        auto place = known_function.entry_place(i, 0, frames);
        if (!place || place->pieces[0].kind == value::Piece::Kind::bytes) return true;
    }
    return false;
}

std::optional<value::Place> Dwarf::Impl::Known::entry_place(std::size_t parameter, std::uint64_t bias,
                                                            Frames &described) const {
    if (function.parameters[parameter].dropped) return std::nullopt;
    const value::Type *type = function.parameters[parameter].type;
    Dwarf_Die own = parameters[parameter];
    const bool holds = expressions_hold && !is_below_cfa(own, die) && !(is_rust && is_stored(own, die));
    auto told = entry_place_of(own, type != nullptr ? type->size : 0, Viewpoint{function.entry, bias, die, true},
                               described, holds);
    return told || !is_rust ? told : passed[parameter];
}

/// Those of Go. Without a name of the source they are a tuple.
void Dwarf::Impl::find_results(Function &function, Dwarf_Die die) {
    std::vector<std::string> labels;
    for (const Declared &declared : declared_in(die)) {
        if (!is_result(declared.die)) continue;
        function.results.push_back(types.type_of(declared.die));
        const bool is_named = !declared.name.empty() && !declared.name.starts_with('~') && declared.name != "_";
        labels.push_back(is_named ? declared.name : "__" + std::to_string(labels.size()));
    }
    if (function.results.empty()) return;
    function.result = function.results.size() == 1 ? function.results[0] : types.tuple(function.results, labels);
    function.result_known = has_registers_of_go(units, die);
}

const Dwarf::Impl::Known &Dwarf::Impl::function(Dwarf_Die die) {
    auto found = functions.find(die.addr);
    if (found != functions.end()) return *found->second;
    auto made = std::make_unique<Known>();
    Known &known_function = *made;
    functions.emplace(die.addr, std::move(made));
    known.emplace(&known_function.function, &known_function);
    known_function.die = die;
    Function &function = known_function.function;
    function.name = std::string(inherited_name(die));
    function.linkage = std::string(linkage_name(die));
    function.qualified = units.qualified_name(die);
    function.ranges = address_ranges(die);
    function.entry = entry_address(die).value_or(0);
    function.typed = units.tells_types(units.of(die)) || inherited_flag(die, DW_AT_prototyped);
    function.result = types.type_of(die);
    find_results(function, die);
    function.line =
        static_cast<int>(std::min<std::uint64_t>(inherited_number(die, DW_AT_decl_line).value_or(0), 1U << 30));
    function.die = dwarf_dieoffset(&die);
    Dwarf_Die declared = attribute(die, DW_AT_decl_file) ? die : declaration(die);
    if (auto file = number(declared, DW_AT_decl_file)) function.file = units.file_of(declared, *file);
    function.variadic = is_variadic(die) || is_variadic(abstract_instance(die));
    for (ParameterDie &parameter : parameters_of(die)) {
        Dwarf_Die own = parameter.declared.die;
        Parameter &made_of = function.parameters.emplace_back();
        made_of.name = std::move(parameter.declared.name);
        made_of.type = types.type_of(own);
        made_of.artificial = inherited_flag(own, DW_AT_artificial);
        made_of.dropped = parameter.dropped;
        made_of.by_reference = passes_addresses(units, die) && is_address_passed(own);
        made_of.promoted = is_promoted(units, die, made_of.type);
        known_function.parameters.push_back(own);
        function.own_convention = function.own_convention || parameter.dropped;
    }
    join_lengths(function.parameters);
    bool may_change = is_optimized(units.of(die).skeleton, known_function.parameters) && may_change_signature(die);
    known_function.expressions_hold = may_change;
    auto told = std::count_if(function.parameters.begin(), function.parameters.end(),
                              [](const Parameter &parameter) { return !parameter.artificial; });
    function.own_convention = function.own_convention || has_own_convention(die) || has_own_convention(units, die) ||
                              lacks_parameters(die, function.linkage, static_cast<std::size_t>(told)) ||
                              (may_change && hides_parameters(known_function));
    known_function.expressions_hold = may_change || function.own_convention;
    known_function.is_rust = units.language(die) == DW_LANG_Rust;
    if (known_function.is_rust) {
        bool changed = has_own_convention(die);
        known_function.passed = changed ? std::vector<std::optional<value::Place>>(known_function.parameters.size())
                                        : rust_places(function, known_function.parameters, die);
        function.result_known = !changed && rust_returns_as_c(function.result, !may_change);
    }
    return known_function;
}

Viewpoint Dwarf::Impl::viewpoint(std::uint64_t vaddr, std::uint64_t bias) {
    Viewpoint view{vaddr, bias, function_die(vaddr), false};
    view.at_entry = view.function && entry_address(*view.function) == vaddr;
    return view;
}

const Function *Dwarf::function_at(std::uint64_t vaddr) {
    auto die = impl_->function_die(vaddr);
    return die ? &impl_->function(*die).function : nullptr;
}

namespace {

/// As Go's compiler writes a parameter that it has taken apart and passes on, too: each piece twice.
value::Place without_doubles(value::Place place, const Parameter &parameter) {
    if (place.pieces.size() < 2 || !parameter.type || parameter.by_reference) return place;
    const auto size = [&place] {
        std::uint64_t sum = 0;
        for (const value::Piece &each : place.pieces) sum += each.size;
        return sum;
    };
    if (size() <= parameter.type->size) return place;
    place.pieces.erase(std::unique(place.pieces.begin(), place.pieces.end()), place.pieces.end());
    if (size() == parameter.type->size) return place;
    return value::Place::not_known("`" + parameter.name + "` has more pieces than bytes");
}

} // namespace

std::vector<std::optional<value::Place>> Dwarf::entry_places(const Function &function, std::uint64_t bias) {
    std::vector<std::optional<value::Place>> places(function.parameters.size());
    auto known = impl_->known.find(&function);
    if (known == impl_->known.end()) return places;
    for (std::size_t i = 0; i < places.size(); ++i)
        if (auto place = known->second->entry_place(i, bias, impl_->frames))
            places[i] = without_doubles(std::move(*place), function.parameters[i]);
    return places;
}

std::vector<const Function *> Dwarf::functions_named(std::string_view name) {
    std::vector<const Function *> found;
    std::string_view plain = last_component(name);
    auto &units = impl_->units;
    for (Unit *unit : impl_->names.units(Names::Kind::function, plain)) {
        for (std::uint32_t at : impl_->names.in(*unit, Names::List::functions, plain)) {
            Dwarf_Die die = die_at(units.outline(*unit).functions[at], units.top(*unit).cu);
            if (!is_named(units, die, name)) continue;
            auto ranges = address_ranges(die);
            if (!ranges.empty() && units.executable(ranges.front().first))
                found.push_back(&impl_->function(die).function);
        }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Function *a, const Function *b) { return a->entry < b->entry; });
    found.erase(std::unique(found.begin(), found.end(),
                            [](const Function *a, const Function *b) { return a->entry == b->entry; }),
                found.end());
    return found;
}

std::optional<DescribedCode> Dwarf::Impl::code_of(Dwarf_Die die) {
    auto entry = entry_address(die);
    const auto ranges = address_ranges(die);
    if (!entry || ranges.empty() || !units.executable(*entry)) return std::nullopt;
    std::uint64_t end = *entry;
    for (const auto &[low, high] : ranges)
        if (low <= *entry && *entry < high) end = high;
    return DescribedCode{units.qualified_name(die), std::string(linkage_name(die)), *entry, end};
}

std::vector<DescribedCode> Dwarf::described(const NamePattern &pattern) {
    auto &units = impl_->units;
    const std::string_view text = pattern.text(), name = text.substr(0, parameter_list(text));
    const bool has_parameters = name.size() != text.size(); // which linkage names alone have
    std::vector<DescribedCode> found;
    auto add = [&](Unit &unit, std::size_t at) {
        Dwarf_Die die = die_at(units.outline(unit).functions[at], units.top(unit).cu);
        const std::string qualified = units.qualified_name(die);
        const bool is_it = has_parameters      ? pattern.matches(linkage_name(die))
                           : pattern.is_glob() ? text::glob_match(text, qualified)
                                               : qualified == name || linkage_name(die) == text;
        auto code = is_it ? impl_->code_of(die) : std::nullopt;
        if (code) found.push_back(std::move(*code));
    };
    if (pattern.is_glob()) {
        for (Unit *unit : units.all())
            for (std::size_t at = 0; at < units.outline(*unit).functions.size(); ++at) add(*unit, at);
    } else {
        const std::string_view plain = last_component(name);
        for (Unit *unit : impl_->names.units(Names::Kind::function, plain))
            for (std::uint32_t at : impl_->names.in(*unit, Names::List::functions, plain)) add(*unit, at);
    }
    return found;
}

std::vector<DescribedCode> Dwarf::described() {
    std::vector<DescribedCode> found = described(NamePattern::glob("*"));
    std::erase_if(found, [](const DescribedCode &code) { return code.qualified.empty(); });
    return found;
}

std::vector<std::string> Dwarf::function_names() {
    std::set<std::string> names;
    auto add = [&](Dwarf_Die die) {
        std::string name = impl_->units.qualified_name(die);
        if (!name.empty()) names.insert(std::move(name));
    };
    for (Unit *unit : impl_->units.all()) {
        Dwarf_CU *cu = impl_->units.top(*unit).cu;
        for (const std::uint8_t *at : impl_->units.outline(*unit).functions) add(die_at(at, cu));
        const void *last = nullptr;
        for (const Inlined &inlined : impl_->units.inlined(*unit)) // those that another unit or file describes
            if (inlined.origin_unit != cu && std::exchange(last, inlined.origin) != inlined.origin)
                add(die_at(inlined.origin, inlined.origin_unit));
    }
    return {names.begin(), names.end()};
}

} // namespace ktrace::symbols
