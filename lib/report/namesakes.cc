#include "report/namesakes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "symbols/dwarf/dwarf.h"

namespace ktrace::report {

namespace {

using Namesakes = std::vector<trace::CountedLocation *>;

/// Probes at one instruction are distinguished by their numbers.
bool are_at_one_place(const Namesakes &locations) {
    return std::all_of(locations.begin(), locations.end(), [&](const trace::CountedLocation *location) {
        return location->vaddr == locations[0]->vaddr && location->instance == locations[0]->instance;
    });
}

/// `Foo::bar(int)`; empty for what has no parameters in its name.
std::string signature_of(const trace::CountedLocation &location) {
    const symbols::Symbol *symbol = location.instance == 0 ? location.module->covering(location.vaddr) : nullptr;
    if (!symbol || location.module->demangled(*symbol, false) != location.info.symbol) return {};
    std::string_view signature = location.module->demangled(*symbol, true);
    return signature == location.info.symbol ? std::string() : std::string(signature);
}

/// `at FILE:LINE`, for an inlined instance `in FUNCTION at FILE:LINE`, of its call; empty without debug information.
std::string source_of(const trace::CountedLocation &location) {
    symbols::Dwarf *dwarf = location.module->dwarf(symbols::DebugSource::local);
    if (!dwarf) return {};
    if (location.instance == 0) {
        const symbols::Function *function = location.info.offset == 0 ? dwarf->function_at(location.vaddr) : nullptr;
        if (function && !function->file.empty()) return fmt::format("at {}:{}", function->file, function->line);
        auto line = dwarf->line_at(location.vaddr);
        return line ? fmt::format("at {}:{}", line->file, line->line) : std::string();
    }
    auto call = dwarf->inlined_call(location.instance);
    return call ? fmt::format("in {} at {}:{}", call->function, call->file, call->line) : std::string();
}

/// True where each of them is called as no other is.
bool are_apart(const Namesakes &locations) {
    std::set<std::string_view> said;
    return std::all_of(locations.begin(), locations.end(), [&](const trace::CountedLocation *location) {
        return !location->info.which.empty() && said.insert(location->info.which).second;
    });
}

void tell_apart(const Namesakes &locations) {
    for (trace::CountedLocation *location : locations) location->info.which = signature_of(*location);
    if (are_apart(locations)) return;
    for (trace::CountedLocation *location : locations) location->info.which = source_of(*location);
    if (are_apart(locations)) return;
    for (trace::CountedLocation *location : locations)
        location->info.which += fmt::format("{}{:#x}", location->info.which.empty() ? "" : ", ", location->vaddr);
}

} // namespace

void tell_namesakes_apart(trace::Trace &trace, const std::vector<std::size_t> &shown) {
    std::map<std::tuple<char, const symbols::Module *, std::string_view, std::uint64_t>, Namesakes> by_name;
    for (std::size_t i : shown) {
        trace::CountedLocation &location = *trace.installed.locations[i];
        location.info.which.clear();
        if (location.module && !location.info.symbol.empty())
            by_name[{location.info.kind, location.module, location.info.symbol, location.info.offset}].push_back(
                &location);
    }
    for (const auto &[name, locations] : by_name)
        if (!are_at_one_place(locations)) tell_apart(locations);
}

} // namespace ktrace::report
