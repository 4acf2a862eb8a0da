// Inlined functions (dwarf.h): where their code begins, and the chain of them at an address.
#include "symbols/dwarf/internal.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "base/text.h"
#include "symbols/names/name_pattern.h"

namespace ktrace::symbols {

namespace {

constexpr std::size_t deepest_scopes = 256;

bool is_block(unsigned tag) {
    switch (tag) {
    case DW_TAG_lexical_block:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt: return true;
    default: return false;
    }
}

/// The function that an inlined instance was inlined into, as linkers name it.
std::string name_around(Units &units, Dwarf_Die instance) {
    auto function = units.function_around(instance);
    if (!function) return {};
    std::string_view linkage = linkage_name(*function);
    return std::string(!linkage.empty() ? linkage : inherited_name(*function));
}

int small_number(std::optional<std::uint64_t> number) {
    return static_cast<int>(std::min<std::uint64_t>(number.value_or(0), 1U << 30));
}

/// Where the call is that an inlined instance stands for; its caller is left open.
SourceFrame call_of(Units &units, Dwarf_Die instance) {
    SourceFrame call;
    call.file = units.file_of(instance, number(instance, DW_AT_call_file).value_or(~std::uint64_t{0}));
    call.line = small_number(number(instance, DW_AT_call_line));
    return call;
}

} // namespace

std::vector<Dwarf_Die> scopes_at(Dwarf_Die function, std::uint64_t vaddr) {
    std::vector<Dwarf_Die> scopes{function};
    while (scopes.size() < deepest_scopes) {
        auto below = children(scopes.back());
        auto inner = std::find_if(below.begin(), below.end(),
                                  [&](Dwarf_Die child) { return is_block(tag(child)) && covers(child, vaddr); });
        if (inner == below.end()) break;
        scopes.push_back(*inner);
    }
    return scopes;
}

std::vector<Dwarf_Die> scopes_of(Dwarf_Die function, Dwarf_Die instance, std::uint64_t vaddr) {
    std::vector<Dwarf_Die> scopes{function};
    while (scopes.back().addr != instance.addr) {
        auto below = children(scopes.back()); // in the order of the file, each in front of all that is below it
        auto behind = std::find_if(below.begin(), below.end(),
                                   [&](Dwarf_Die child) { return std::greater<>{}(child.addr, instance.addr); });
        if (behind == below.begin() || scopes.size() == deepest_scopes) return scopes_at(function, vaddr);
        scopes.push_back(behind[-1]);
    }
    while (scopes.size() < deepest_scopes) {
        auto below = children(scopes.back());
        auto inner = std::find_if(below.begin(), below.end(), [&](Dwarf_Die child) {
            return is_block(tag(child)) && tag(child) != DW_TAG_inlined_subroutine && covers(child, vaddr);
        });
        if (inner == below.end()) break;
        scopes.push_back(*inner);
    }
    return scopes;
}

std::uint32_t Dwarf::Impl::instance_number(Dwarf_Die instance) {
    auto [known_number, is_new] =
        instance_numbers.try_emplace(instance.addr, static_cast<std::uint32_t>(instances.size() + 1));
    if (is_new) instances.push_back(instance);
    return known_number->second;
}

std::optional<Dwarf_Die> Dwarf::Impl::instance_die(std::uint32_t number) const {
    if (number == 0 || number > instances.size()) return std::nullopt;
    return instances[number - 1];
}

const Function *Dwarf::inlined_function(std::uint32_t instance) {
    auto die = impl_->instance_die(instance);
    return die ? &impl_->function(abstract_instance(*die)).function : nullptr;
}

std::optional<SourceFrame> Dwarf::inlined_call(std::uint32_t instance) {
    auto &units = impl_->units;
    auto die = impl_->instance_die(instance);
    auto function = die ? units.function_around(*die) : std::nullopt;
    if (!function) return std::nullopt;
    SourceFrame call = call_of(units, *die);
    call.function = units.qualified_name(*function);
    for (Dwarf_Die scope : scopes_of(*function, *die, entry_address(*die).value_or(0))) {
        if (scope.addr == die->addr) break;
        if (tag(scope) != DW_TAG_inlined_subroutine) continue;
        call.function = units.qualified_name(scope);
        call.inlined = true;
    }
    return call;
}

std::vector<InlinedInstance> Dwarf::inlined(std::string_view name) {
    std::vector<InlinedInstance> found;
    std::string_view plain = last_component(name);
    auto &units = impl_->units;
    for (Unit *unit : impl_->names.units(Names::Kind::function, plain)) {
        const auto &inlined = units.inlined(*unit);
        for (std::size_t at : impl_->names.in(*unit, Names::List::inlined, plain)) {
            const void *origin = inlined[at].origin;
            Dwarf_Die abstract = die_at(origin, inlined[at].origin_unit);
            if (!is_named(units, abstract, name)) continue;
            for (; at < inlined.size() && inlined[at].origin == origin; ++at) {
                Dwarf_Die instance = die_at(inlined[at].instance, units.top(*unit).cu);
                auto entry = entry_address(instance);
                if (!entry || !units.executable(*entry)) continue;
                found.push_back({std::string(inherited_name(abstract)), units.qualified_name(abstract),
                                 std::string(linkage_name(abstract)), *entry, name_around(units, instance),
                                 impl_->instance_number(instance)});
            }
        }
    }
    auto key = [](const InlinedInstance &instance) {
        return std::tie(instance.entry, instance.qualified, instance.instance);
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const InlinedInstance &a, const InlinedInstance &b) { return key(a) < key(b); });
    found.erase(std::unique(found.begin(), found.end(),
                            [&](const InlinedInstance &a, const InlinedInstance &b) { return key(a) == key(b); }),
                found.end());
    return found;
}

std::vector<InlinedInstance> Dwarf::inlined(const NamePattern &pattern) {
    std::set<std::string> names;
    std::string_view text = pattern.text();
    if (!pattern.is_glob()) {
        names.emplace(text.substr(0, parameter_list(text)));
    } else {
        for (std::string &name : function_names())
            if (text::glob_match(text, name)) names.insert(std::move(name));
    }
    // Not those of another namespace or class.
    auto means = [&](const InlinedInstance &instance) {
        return pattern.matches(!instance.linkage.empty()    ? instance.linkage
                               : instance.qualified.empty() ? instance.name
                                                            : instance.qualified);
    };
    std::vector<InlinedInstance> found;
    for (const std::string &name : names)
        for (InlinedInstance &instance : inlined(name))
            if (means(instance)) found.push_back(std::move(instance));
    return found;
}

std::vector<SourceFrame> Dwarf::frames_at(std::uint64_t vaddr) {
    std::vector<SourceFrame> frames;
    auto function = impl_->function_die(vaddr);
    auto line = line_at(vaddr);
    std::string file = line ? line->file : "";
    int number_in_file = line ? line->line : 0;
    if (!function) {
        if (line) frames.push_back({"", file, number_in_file, false});
        return frames;
    }
    auto scopes = scopes_at(*function, vaddr);
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
        bool is_inlined = tag(*scope) == DW_TAG_inlined_subroutine;
        if (!is_inlined && scope + 1 != scopes.rend()) continue;
        frames.push_back({impl_->units.qualified_name(*scope), file, number_in_file, is_inlined});
        SourceFrame call = call_of(impl_->units, *scope);
        file = std::move(call.file);
        number_in_file = call.line;
    }
    return frames;
}

} // namespace ktrace::symbols
