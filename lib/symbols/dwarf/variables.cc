// Variables (dwarf.h): by name, as seen from an address, or from nowhere.
//
// Order: the scopes around the address, innermost first, up to the function (or inlined function) that they are in;
// then statics and globals of its unit; then the functions that it was inlined into; then globals of other units.
#include "symbols/dwarf/internal.h"

#include <algorithm>
#include <set>

#include "arch/host.h"
#include "base/text.h"

namespace ktrace::symbols {

namespace {

bool has_place(Dwarf_Die die) {
    return inherited(die, DW_AT_location).has_value() || inherited(die, DW_AT_const_value).has_value();
}

/// A variable declared in one scope; where the optimizer left it only in the abstract instance, there.
struct InScope {
    Dwarf_Die die{};
    bool concrete = true;
};

std::optional<InScope> find_in(Dwarf_Die scope, std::string_view name) {
    auto last_of = [name](Dwarf_Die where, bool concrete) {
        std::optional<InScope> found;
        for (const Declared &declared : declared_in(where))
            if (declared.name == name) found = InScope{declared.die, concrete};
        return found;
    };
    auto found = last_of(scope, true);
    Dwarf_Die abstract = abstract_instance(scope);
    return found || abstract.addr == scope.addr ? found : last_of(abstract, false);
}

/// The scopes around an address from the innermost outwards, in groups: those of one (inlined) function each.
std::vector<std::vector<Dwarf_Die>> groups_of(const std::vector<Dwarf_Die> &scopes) {
    std::vector<std::vector<Dwarf_Die>> groups(1);
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
        groups.back().push_back(*scope);
        if (tag(*scope) == DW_TAG_inlined_subroutine) groups.emplace_back();
    }
    return groups;
}

/// Those around an address, as seen from the innermost function there or from an inlined instance.
std::vector<std::vector<Dwarf_Die>> groups_at(Dwarf::Impl &impl, std::uint64_t vaddr, std::uint32_t instance) {
    auto inlined = impl.instance_die(instance);
    auto function = inlined ? impl.units.function_around(*inlined) : impl.function_die(vaddr);
    if (!function) return {};
    return groups_of(inlined ? scopes_of(*function, *inlined, vaddr) : scopes_at(*function, vaddr));
}

std::optional<InScope> find_in_group(const std::vector<Dwarf_Die> &group, std::string_view name) {
    for (Dwarf_Die scope : group)
        if (auto found = find_in(scope, name)) return found;
    return std::nullopt;
}

/// The end of a function's prologue as far as its line table shows: the address of the second line row of its code.
std::uint64_t prologue_end(Units &units, Dwarf_Die function, std::uint64_t entry) {
    for (Unit *unit : units.covering(entry)) {
        const auto &rows = units.line_rows(*unit);
        auto row = std::upper_bound(rows.begin(), rows.end(), entry,
                                    [](std::uint64_t at, const LineRow &r) { return at < r.address; });
        if (row != rows.end() && covers(function, row->address)) return row->address;
    }
    return entry + 1;
}

bool is_direct_parameter(Dwarf_Die die, Dwarf_Die function) {
    if (tag(die) != DW_TAG_formal_parameter) return false;
    auto own = declared_in(function);
    return std::any_of(own.begin(), own.end(), [&](const Declared &each) { return each.die.addr == die.addr; });
}

/// Where the calling convention puts the parameter that this DIE is; nullopt where that is not known.
std::optional<value::Place> by_convention(const Function &function, const std::vector<Dwarf_Die> &dies, Dwarf_Die die) {
    std::vector<const value::Type *> types;
    value::Type address;
    address.kind = value::Type::Kind::pointer;
    address.size = 8;
    for (const Parameter &parameter : function.parameters) {
        if (parameter.type == nullptr) return std::nullopt;
        types.push_back(parameter.by_reference ? &address : parameter.type);
    }
    auto places = arch::Host::parameter_places(types, function.result);
    for (std::size_t i = 0; i < dies.size() && i < places.size(); ++i)
        if (dies[i].addr == die.addr)
            return function.parameters[i].by_reference ? places[i].pointed_to() : std::move(places[i]);
    return std::nullopt;
}

/// The same for a function of Rust's: unavailable where it is not known.
value::Place passed_to_rust(const Dwarf::Impl::Known &known, Dwarf_Die die) {
    for (std::size_t i = 0; i < known.passed.size(); ++i)
        if (known.parameters[i].addr == die.addr && known.passed[i]) return *known.passed[i];
    return value::Place::not_known("where Rust passes it is not known");
}

/// The place of a local or parameter. A parameter that lives in memory gets there in the prologue, unless the caller
/// put it there: at the entry it is where the calling convention says; in the rest of the prologue nothing says where.
value::Place local_place(Dwarf::Impl &impl, Dwarf_Die die, std::uint64_t size, const Viewpoint &view) {
    value::Place place = place_of(die, size, view, impl.frames);
    if (!view.function || !lives_in_memory(die) || !is_direct_parameter(die, *view.function)) return place;
    const auto &known = impl.function(*view.function);
    std::uint64_t entry = known.function.entry;
    bool in_prologue =
        view.vaddr == entry || (view.vaddr > entry && view.vaddr < prologue_end(impl.units, *view.function, entry));
    bool stored = known.is_rust && is_stored(die, *view.function);
    if (!in_prologue || (known.function.own_convention && !stored)) return place;
    auto passed = stored ? passed_to_rust(known, die) : by_convention(known.function, known.parameters, die);
    if (!passed) return place;
    Viewpoint at_entry{entry, view.bias, view.function, true};
    if (same_address(*passed, place_of(die, size, at_entry, impl.frames))) return place;
    if (view.vaddr == entry) return std::move(*passed);
    return value::Place::not_known("the function has not stored it yet there; probe its first instruction");
}

Result<Variable> refused(std::string_view name, const std::string &why) {
    return fail(Error::Kind::refused, "`" + std::string(name) + "`: " + why);
}

Result<Variable> made(std::string_view name, const value::Type *type, value::Place place) {
    if (!place.why.empty()) return refused(name, place.why);
    return Variable{type, std::move(place)};
}

Result<Variable> local(Dwarf::Impl &impl, const InScope &found, std::string_view name, const Viewpoint &view) {
    const value::Type *type = impl.types.type_of(found.die);
    if (!found.concrete && !has_place(found.die)) return refused(name, "it is optimized out here");
    return made(name, type, local_place(impl, found.die, type != nullptr ? type->size : 0, view));
}

/// A global or static of one unit; of several of that name the first outside of functions.
std::optional<Dwarf_Die> static_in(Dwarf::Impl &impl, Unit &unit, std::string_view name) {
    std::string_view plain = last_component(name);
    std::optional<Dwarf_Die> in_function;
    for (std::uint32_t at : impl.names.in(unit, Names::List::variables, plain)) {
        Dwarf_Die die = die_at(impl.units.outline(unit).variables[at], impl.units.top(unit).cu);
        bool matches = is_named(impl.units, die, name);
        auto function = impl.units.function_around(die);
        if (!matches && function) // `function::variable` is how people name statics of functions
            matches = matches_qualified(impl.units.qualified_name(*function) + "::" + std::string(plain), name);
        if (!matches) continue;
        if (!function) return die;
        if (!in_function) in_function = die;
    }
    return in_function;
}

std::optional<Dwarf_Die> static_anywhere(Dwarf::Impl &impl, std::string_view name) {
    std::optional<Dwarf_Die> in_function;
    for (Unit *unit : impl.names.units(Names::Kind::variable, last_component(name)))
        if (auto die = static_in(impl, *unit, name)) {
            if (!impl.units.function_around(*die)) return die;
            if (!in_function) in_function = die;
        }
    return in_function;
}

Result<Variable> from_static(Dwarf::Impl &impl, Dwarf_Die die, std::string_view name, std::uint64_t bias) {
    const value::Type *type = impl.types.type_of(die);
    Viewpoint nowhere{0, bias, std::nullopt, false};
    return made(name, type, place_of(die, type != nullptr ? type->size : 0, nowhere, impl.frames));
}

std::string hint_of(const std::vector<std::string> &names, std::string_view wanted) {
    std::vector<std::string_view> views(names.begin(), names.end());
    auto near = text::nearest(wanted, views, 3);
    const auto &shown = near.empty() ? names : near;
    std::string hint;
    for (std::size_t i = 0; i < shown.size() && i < 12; ++i) hint += (i != 0 ? ", " : "") + shown[i];
    return hint.empty() ? hint
                        : (near.empty() ? "in scope there: " : "did you mean ") + hint + (near.empty() ? "" : "?");
}

} // namespace

Result<Variable> Dwarf::variable(std::string_view name, std::uint64_t vaddr, std::uint64_t bias,
                                 std::uint32_t instance) {
    Viewpoint view = impl_->viewpoint(vaddr, bias);
    auto groups = groups_at(*impl_, vaddr, instance);
    if (!groups.empty())
        if (auto found = find_in_group(groups.front(), name)) return local(*impl_, *found, name, view);
    for (Unit *unit : impl_->units.covering(vaddr))
        if (auto die = static_in(*impl_, *unit, name)) return from_static(*impl_, *die, name, bias);
    for (std::size_t i = 1; i < groups.size(); ++i)
        if (auto found = find_in_group(groups[i], name)) return local(*impl_, *found, name, view);
    if (auto die = static_anywhere(*impl_, name)) return from_static(*impl_, *die, name, bias);
    return fail(Error::Kind::not_found, "there is no variable `" + std::string(name) + "` in scope there",
                hint_of(names_in_scope(vaddr, instance), name));
}

Result<Variable> Dwarf::global(std::string_view name, std::uint64_t bias) {
    if (auto die = static_anywhere(*impl_, name)) return from_static(*impl_, *die, name, bias);
    return fail(Error::Kind::not_found, "there is no global or static variable `" + std::string(name) + "`");
}

std::vector<std::string> Dwarf::names_in_scope(std::uint64_t vaddr, std::uint32_t instance) {
    std::vector<std::string> names;
    std::set<std::string> seen;
    for (const auto &group : groups_at(*impl_, vaddr, instance))
        for (Dwarf_Die scope : group)
            for (Declared &declared : declared_in(scope))
                if (!declared.name.empty() && seen.insert(declared.name).second)
                    names.push_back(std::move(declared.name));
    return names;
}

} // namespace ktrace::symbols
