#include "inspect/first_steps.h"

#include <algorithm>
#include <set>

namespace ktrace::inspect {

namespace {

using symbols::Symbol;

/// A name that needs no quotes in a shell, and is neither the beginning of a program nor a part of a function.
bool is_plain(std::string_view name) {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:";
    return !name.empty() && name != "main" && !name.starts_with('_') && name.find_first_not_of(letters) == name.npos;
}

} // namespace

FirstSteps first_steps(const std::vector<CatalogModule> &modules) {
    FirstSteps steps;
    if (modules.empty()) return steps;
    const symbols::Module &program = *modules[0].module;
    steps.module = program.name();
    std::set<std::uint64_t> entries;
    std::uint64_t most_code = 0;
    for (const Symbol &symbol : program.symbols()) {
        if (symbol.kind != Symbol::Kind::function || !entries.insert(symbol.vaddr).second) continue;
        if (symbol.size <= most_code || !is_plain(program.demangled(symbol, false))) continue;
        steps.example = program.demangled(symbol, false);
        most_code = symbol.size;
    }
    steps.functions = entries.size();
    const bool has_libc = std::any_of(modules.begin(), modules.end(), [](const CatalogModule &each) {
        return each.module->name().starts_with("libc.") && !each.module->named("write").empty();
    });
    if (steps.example.empty() && has_libc) steps.example = "libc:write";
    return steps;
}

} // namespace ktrace::inspect
