// FILE:LINE: the places where the code of a source line begins, by the line tables.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "probe/resolve_parts.h"
#include "symbols/dwarf/dwarf.h"

namespace ktrace::probe {

namespace {

/// A module that the user named, else the program, may be asked of a debuginfod server; the others only if their debug
/// information is here.
symbols::Dwarf *dwarf_of(const Request &request, const Loaded &loaded) {
    bool meant = loaded.is_program || !request.spec.module.empty();
    return loaded.module->dwarf(meant ? symbols::DebugSource::remote : symbols::DebugSource::local);
}

Error no_debug_info(const Request &request) {
    const Loaded *told = request.chosen.front();
    for (const Loaded *loaded : request.chosen)
        if (loaded->is_program) told = loaded;
    std::string where = request.spec.module.empty() ? "nothing loaded" : request.spec.module;
    return about_place(
        request, Error::Kind::not_found,
        where + (request.spec.module.empty() ? " has" : " has no") + " debug information to find " + request.spec.file +
            " in: " + told->module->why_no_dwarf(),
        "compile with -g, install its debug symbols, or set DEBUGINFOD_URLS and name a library as MODULE");
}

Error unknown_file(const Request &request, const std::vector<symbols::Dwarf *> &dwarfs) {
    // The libraries' files are hardly meant where the program's own are not known.
    for (const Loaded *loaded : request.chosen)
        if (loaded->is_program && !dwarf_of(request, *loaded))
            return about_place(request, Error::Kind::not_found,
                               "no library has a source file " + request.spec.file + ", and " +
                                   std::string(loaded->module->name()) +
                                   " has no debug information: " + loaded->module->why_no_dwarf(),
                               "compile with -g, or install its debug symbols");
    std::vector<std::string> names;
    for (symbols::Dwarf *dwarf : dwarfs)
        for (const std::string &file : dwarf->files()) names.emplace_back(text::base_name(file));
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::vector<std::string_view> candidates(names.begin(), names.end());
    auto near = text::nearest(text::base_name(request.spec.file), candidates, 3);
    if (near.empty() && names.size() <= 5) near = names;
    return about_place(request, Error::Kind::not_found,
                       "no source file " + request.spec.file + " in the debug information",
                       near.empty() ? "" : "did you mean " + listed(near, 3) + "?");
}

Error no_code(const Request &request, int nearest) {
    std::string line = request.spec.file + ":" + std::to_string(nearest);
    Error error = about_place(request, Error::Kind::not_found,
                              request.spec.file + ":" + std::to_string(request.spec.line) + " has no code",
                              "the nearest line with code is " + line);
    error.column = request.spec.offset_column;
    error.width = static_cast<int>(request.spec.text.size()) - error.column;
    return error;
}

} // namespace

Result<Resolved> resolve_line(const Request &request) {
    const Spec &spec = request.spec;
    std::vector<symbols::Dwarf *> dwarfs;
    Finding finding;
    for (const Loaded *loaded : request.chosen) {
        symbols::Dwarf *dwarf = dwarf_of(request, *loaded);
        if (!dwarf) continue;
        dwarfs.push_back(dwarf);
        for (const symbols::LineAddress &line : dwarf->addresses_of(spec.file, spec.line)) {
            if (!loaded->module->executable(line.vaddr)) continue;
            Location location = location_at(*loaded, line.vaddr);
            if (auto status = check_entry(request, location); !status) return tl::unexpected(status.error());
            if (auto status = check_boundary(request, location); !status) return tl::unexpected(status.error());
            finding.add(std::move(location));
        }
    }
    if (!finding.empty()) return finding.take(request.modules);
    if (dwarfs.empty()) return tl::unexpected(no_debug_info(request));
    std::optional<int> nearest;
    for (symbols::Dwarf *dwarf : dwarfs) {
        auto candidate = dwarf->nearest_line(spec.file, spec.line);
        if (candidate && (!nearest || std::abs(*candidate - spec.line) < std::abs(*nearest - spec.line)))
            nearest = candidate;
    }
    return tl::unexpected(nearest ? no_code(request, *nearest) : unknown_file(request, dwarfs));
}

} // namespace ktrace::probe
