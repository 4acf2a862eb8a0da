// Functions and their parameters (dwarf.h): function_at, functions_named, entry_places.
#include "symbols/dwarf_internal.h"

#include <algorithm>
#include <set>

namespace ktrace::symbols {

namespace {

/// One parameter of a function: its DIE in the concrete instance, or where only the abstract one has it, there.
struct ParameterDie {
    Dwarf_Die die{};
    bool dropped = false;
};

bool is_parameter(Dwarf_Die die) { return tag(die) == DW_TAG_formal_parameter; }

/// The parameters in the order of the source. An optimized copy (.isra, .constprop) may lack some that its abstract
/// instance or declaration has.
std::vector<ParameterDie> parameters_of(Dwarf_Die function, bool &variadic) {
    std::vector<ParameterDie> concrete;
    for (Dwarf_Die child : children(function)) {
        if (is_parameter(child)) concrete.push_back({child, false});
        if (tag(child) == DW_TAG_unspecified_parameters) variadic = true;
    }
    Dwarf_Die abstract = abstract_instance(function);
    if (abstract.addr == function.addr) return concrete;
    std::vector<ParameterDie> all;
    for (Dwarf_Die child : children(abstract)) {
        if (tag(child) == DW_TAG_unspecified_parameters) variadic = true;
        if (!is_parameter(child)) continue;
        auto own = std::find_if(concrete.begin(), concrete.end(), [&](const ParameterDie &parameter) {
            return abstract_instance(parameter.die).addr == child.addr;
        });
        all.push_back(own != concrete.end() ? *own : ParameterDie{child, true});
    }
    for (const ParameterDie &parameter : concrete)
        if (abstract_instance(parameter.die).addr == parameter.die.addr) all.push_back(parameter);
    return all;
}

/// True where the compiler says that callers do not keep the calling convention (LLVM marks changed signatures so).
bool has_own_convention(Dwarf_Die function) {
    return inherited_number(function, DW_AT_calling_convention).value_or(DW_CC_normal) == DW_CC_nocall;
}

} // namespace

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
    function.result = types.type_of(die);
    function.line =
        static_cast<int>(std::min<std::uint64_t>(inherited_number(die, DW_AT_decl_line).value_or(0), 1U << 30));
    function.die = dwarf_dieoffset(&die);
    Dwarf_Die declared = attribute(die, DW_AT_decl_file) ? die : declaration(die);
    if (auto file = number(declared, DW_AT_decl_file)) function.file = units.file_of(declared, *file);
    for (const ParameterDie &parameter : parameters_of(die, function.variadic)) {
        function.parameters.push_back({std::string(inherited_name(parameter.die)), types.type_of(parameter.die),
                                       inherited_flag(parameter.die, DW_AT_artificial), parameter.dropped});
        known_function.parameters.push_back(parameter.die);
        function.own_convention = function.own_convention || parameter.dropped;
    }
    function.own_convention = function.own_convention || has_own_convention(die);
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

std::vector<std::optional<value::Place>> Dwarf::entry_places(const Function &function, std::uint64_t bias) {
    std::vector<std::optional<value::Place>> places(function.parameters.size());
    auto known = impl_->known.find(&function);
    if (known == impl_->known.end()) return places;
    Viewpoint entry{function.entry, bias, known->second->die, true};
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (function.parameters[i].dropped) continue;
        const value::Type *type = function.parameters[i].type;
        places[i] = entry_place_of(known->second->parameters[i], type != nullptr ? type->size : 0, entry, impl_->frames,
                                   function.own_convention);
    }
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
