// The types that interfaces of a Go program may hold: which have descriptors, where these are, and which are likely.
#include <algorithm>
#include <array>
#include <set>

#include "probe/compile_scope.h"
#include "symbols/names/name_pattern.h"

namespace ktrace::probe {

namespace {

using program::contents::DynamicTypes;
using symbols::DescribedType;

constexpr std::size_t most_types = 256; // read for one interface

std::uint64_t address_of(const symbols::Module &module, std::string_view symbol) {
    const auto found = module.named(symbol);
    return found.empty() ? 0 : found.front()->vaddr;
}

/// Names of the types that the linker has made tables of for this interface, or of pointers to these:
/// `go:itab.*os.File,io.Reader`.
std::set<std::string, std::less<>> implementations(const symbols::Module &module, const std::string &interface) {
    constexpr std::string_view before = "go:itab."; // a dot for the colon before Go 1.20
    std::set<std::string, std::less<>> names;
    for (const symbols::Symbol *symbol : module.matching(symbols::NamePattern::glob("go?itab.*," + interface))) {
        std::string_view name = symbol->name;
        if (name.size() <= before.size() + interface.size()) continue;
        name.remove_prefix(before.size());
        name.remove_suffix(interface.size() + 1);
        if (name.starts_with('*')) name.remove_prefix(1);
        names.emplace(name);
    }
    return names;
}

/// `net/http` of `*net/http.Request`; empty: of no package.
std::string_view package_of(std::string_view name) {
    const std::size_t begin = name.find_first_not_of("*[]0123456789");
    if (begin == name.npos) return {};
    name.remove_prefix(begin);
    name = name.substr(0, name.find_first_of("[ {("));
    const std::size_t slash = name.rfind('/'), dot = name.find('.', slash == name.npos ? 0 : slash);
    return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

/// How likely it is that the program itself puts such a value into an interface: less is more; none: it never does.
std::optional<int> rank_of(std::string_view name, std::string_view own_package) {
    const std::string_view package = package_of(name);
    for (std::string_view made : {"noalg.", "go.", "hash<", "bucket<", "hchan<"})
        if (name.starts_with(made)) return std::nullopt;
    if (package == "runtime" || package == "reflect" || package == "unicode") return std::nullopt;
    for (std::string_view kept : {"runtime/", "internal/", "vendor/"})
        if (package.starts_with(kept)) return std::nullopt;
    if (package == own_package) return 0;
    if (package == "main" || package.find('.') != package.npos) return 1; // not of the standard library
    if (package == "errors" || package == "fmt" || name.ends_with("Error")) return 2;
    return package.empty() ? 3 : 4;
}

} // namespace

DynamicTypes LocationScope::dynamic_types(const value::Type &interface) {
    DynamicTypes all;
    if (!location_.module || !dwarf()) return all;
    const symbols::Module &module = *location_.module;
    const std::uint64_t begin = address_of(module, "runtime.types"), end = address_of(module, "runtime.etypes");
    if (begin == 0 || end <= begin) return all;
    all.begin = begin + bias_;
    all.end = end + bias_;
    const bool is_any = interface.name.starts_with("interface {");
    const auto with_table = is_any ? std::set<std::string, std::less<>>() : implementations(module, interface.name);
    const std::string_view own_package = package_of(location_.symbol);
    std::array<std::vector<const DescribedType *>, 6> by_rank;
    for (const DescribedType &each : dwarf_->described_types()) {
        const auto rank = with_table.contains(each.name) ? std::optional(-1) : rank_of(each.name, own_package);
        if (rank) by_rank.at(static_cast<std::size_t>(*rank + 1)).push_back(&each);
    }
    for (const auto &likely : by_rank) {
        for (const DescribedType *each : likely) {
            if (all.types.size() == most_types) return all;
            const value::Type *type = dwarf_->type_of(*each);
            if (!type || type->size == 0) continue;
            const std::uint64_t at = each->descriptor >= begin ? each->descriptor : each->descriptor + begin;
            all.types.push_back({at + bias_, type});
        }
    }
    return all;
}

} // namespace ktrace::probe
