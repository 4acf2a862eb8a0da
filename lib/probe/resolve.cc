#include "probe/resolve.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <unordered_map>

#include "arch/host.h"
#include "base/text.h"
#include "probe/resolve_parts.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/names/name_pattern.h"

namespace ktrace::probe {

// --- gathering

bool Finding::add(Location location) {
    if (!seen_.emplace(location.module.get(), location.vaddr, location.instance).second) return false;
    found_.locations.push_back(std::move(location));
    return true;
}

void Finding::add_resolver(Location location) {
    for (const Location &other : found_.ifunc_resolvers)
        if (other.module == location.module && other.vaddr == location.vaddr) return;
    found_.ifunc_resolvers.push_back(std::move(location));
}

Resolved Finding::take(std::span<const Loaded> modules) {
    std::unordered_map<const symbols::Module *, std::size_t> order;
    for (const Loaded &loaded : modules) order.try_emplace(loaded.module.get(), order.size());
    auto before = [&](const Location &a, const Location &b) {
        std::size_t module_a = order[a.module.get()], module_b = order[b.module.get()];
        return std::tie(module_a, a.vaddr, a.instance) < std::tie(module_b, b.vaddr, b.instance);
    };
    std::sort(found_.locations.begin(), found_.locations.end(), before);
    return std::move(found_);
}

// --- words

std::string hex(std::uint64_t value) {
    char digits[16];
    auto end = std::to_chars(digits, digits + sizeof digits, value, 16).ptr;
    return "0x" + std::string(digits, end);
}

std::string offset_text(const Request &request, std::uint64_t offset) {
    const Spec &spec = request.spec;
    bool decimal = spec.has_offset && spec.text.compare(static_cast<std::size_t>(spec.offset_column), 2, "0x") != 0;
    return decimal ? std::to_string(offset) : hex(offset);
}

std::string listed(const std::vector<std::string> &names, std::size_t most) {
    std::string text;
    std::size_t shown = std::min(most, names.size());
    for (std::size_t i = 0; i < shown; i++) {
        bool last = i + 1 == shown && shown == names.size();
        if (i != 0) text += last ? " and " : ", ";
        text += names[i];
    }
    if (shown < names.size()) text += " and " + std::to_string(names.size() - shown) + " more";
    return text;
}

namespace {

Error about(const Request &request, int column, std::size_t width, Error::Kind kind, std::string message,
            std::string hint) {
    return Error{kind,
                 std::move(message),
                 std::move(hint),
                 request.spec.text,
                 column,
                 static_cast<int>(std::max<std::size_t>(width, 1))};
}

} // namespace

Error about_place(const Request &request, Error::Kind kind, std::string message, std::string hint) {
    auto column = static_cast<std::size_t>(request.spec.symbol_column);
    return about(request, request.spec.symbol_column, request.spec.text.size() - column, kind, std::move(message),
                 std::move(hint));
}

Error about_offset(const Request &request, Error::Kind kind, std::string message, std::string hint) {
    if (!request.spec.has_offset) return about_place(request, kind, std::move(message), std::move(hint));
    auto column = static_cast<std::size_t>(request.spec.offset_column);
    return about(request, request.spec.offset_column, request.spec.text.size() - column, kind, std::move(message),
                 std::move(hint));
}

// --- checks

Location location_at(const Loaded &loaded, std::uint64_t vaddr) {
    Location location;
    location.module = loaded.module;
    location.vaddr = vaddr;
    auto extent = loaded.module->function_at(vaddr);
    if (!extent) return location;
    location.function = extent->start;
    location.function_end = extent->end;
    location.offset = vaddr - extent->start;
    const symbols::Symbol *symbol = loaded.module->covering(vaddr);
    if (symbol && symbol->vaddr == extent->start)
        location.symbol = std::string(loaded.module->demangled(*symbol, false));
    if (location.symbol.empty()) location.offset = 0;
    return location;
}

namespace {

bool has_function(const Loaded &loaded, std::string_view name) {
    auto found = loaded.module->matching(symbols::NamePattern::exact(name));
    return std::any_of(found.begin(), found.end(), [](const symbols::Symbol *symbol) { return symbol->is_function(); });
}

/// Which of several modules an error is about, where the spec names none.
std::string in_module(const Request &request, const Location &location) {
    if (!request.spec.module.empty() || request.modules.size() < 2 || !location.module) return {};
    for (const Loaded &loaded : request.modules)
        if (loaded.is_program && loaded.module == location.module) return {};
    return " of " + std::string(location.module->name());
}

/// How to leave out a module that the user did not mean, where the program has such a function, too.
std::string or_module(const Request &request, const Location &location) {
    if (in_module(request, location).empty()) return {};
    for (const Loaded &loaded : request.modules)
        if (loaded.is_program && has_function(loaded, request.spec.symbol))
            return "; " + std::string(loaded.module->name()) + ":" + request.spec.text +
                   " means the program's own alone";
    return {};
}

/// Refuses a place whose trap would break off a restartable sequence: nothing that goes through it would come to its
/// end.
Status check_sequence(const Request &request, const Location &location) {
    if (!location.module || !location.module->in_sequence(location.vaddr, arch::Host::longest + 1)) return {};
    const auto code = location.module->bytes_at(location.vaddr, arch::Host::longest);
    const std::uint64_t length = code.empty() ? 1 : arch::Host::plan(code, VirtAddr{location.vaddr}).length;
    const auto sequence = location.module->in_sequence(location.vaddr, length);
    if (!sequence) return {};
    auto name = [&](std::uint64_t vaddr) {
        if (location.symbol.empty() || vaddr < location.function || vaddr >= location.function_end) return hex(vaddr);
        const std::uint64_t offset = vaddr - location.function;
        return location.symbol + (offset == 0 ? "" : "+" + offset_text(request, offset));
    };
    return tl::unexpected(about_offset(request, Error::Kind::refused,
                                       name(location.vaddr) + in_module(request, location) +
                                           " cannot be probed: it is in a restartable sequence (rseq), which a probe " +
                                           "would break off at each hit",
                                       name(sequence->end) + " is behind it"));
}

} // namespace

Status check_boundary(const Request &request, const Location &location) {
    if (!location.module || location.function == 0 || location.vaddr == location.function)
        return check_sequence(request, location);
    // A crafted symbol may call anything a function; no real one is larger.
    constexpr std::uint64_t largest = 16U << 20U;
    std::uint64_t size = std::min(location.function_end - location.function, largest);
    auto code = location.module->bytes_at(location.function, static_cast<std::size_t>(size));
    std::uint64_t offset = location.vaddr - location.function;
    auto answer = arch::Host::probeable(code, VirtAddr{location.function}, offset);
    if (answer.ok) return check_sequence(request, location);
    auto name = [&](std::uint64_t at) {
        return location.symbol.empty() ? hex(location.function + at) : location.symbol + "+" + offset_text(request, at);
    };
    std::string hint;
    if (answer.before) hint = name(*answer.before);
    if (answer.after) hint += (hint.empty() ? "" : " and ") + name(*answer.after);
    if (!hint.empty()) hint += answer.before && answer.after ? " are" : " is";
    bool inside = answer.before || answer.after;
    std::string why = inside ? " is not at the start of an instruction" : " cannot be probed: ";
    if (!inside && answer.why) why += answer.why;
    return tl::unexpected(about_offset(request, Error::Kind::refused, name(offset) + in_module(request, location) + why,
                                       hint + or_module(request, location)));
}

Result<Location> at_offset(const Request &request, Location function) {
    std::uint64_t offset = request.spec.offset, size = function.function_end - function.function;
    Location location = std::move(function);
    location.vaddr = location.function + offset;
    location.offset = offset;
    if (offset != 0 && offset >= size)
        return tl::unexpected(about_offset(request, Error::Kind::refused,
                                           location.symbol + "+" + offset_text(request, offset) +
                                               in_module(request, location) + " is behind the function's end",
                                           location.symbol + " has " + offset_text(request, size) + " bytes" +
                                               or_module(request, location)));
    if (auto status = check_boundary(request, location); !status) return tl::unexpected(status.error());
    return location;
}

Status check_entry(const Request &request, const Location &location) {
    if (request.kind == Kind::probe || location.function == 0 || location.vaddr == location.function) return {};
    std::string probe = request.kind == Kind::ret ? "a return probe" : "an entry probe";
    std::string function = location.symbol.empty() ? hex(location.function) : location.symbol;
    return tl::unexpected(about_offset(request, Error::Kind::refused,
                                       probe + " belongs on a function's first instruction, and " +
                                           hex(location.vaddr) + " is inside " + function,
                                       "probe " + function + ", or use -k"));
}

// --- resolve

namespace {

/// `do_work:0x1234`: the name in place of a MODULE is that of a function.
bool is_function(const Request &request, std::string_view name) {
    return std::any_of(request.modules.begin(), request.modules.end(),
                       [name](const Loaded &loaded) { return has_function(loaded, name); });
}

Status check_request(const Request &request) {
    const Spec &spec = request.spec;
    if (request.kind == Kind::watch)
        return fail(Error::Kind::usage, spec.text + " is the SPEC of a probe, not of a watchpoint");
    if (request.kind != Kind::probe && spec.has_offset && spec.offset != 0) {
        const char *probe = request.kind == Kind::ret ? "a return probe" : "an entry probe";
        return tl::unexpected(
            about_offset(request, Error::Kind::refused,
                         std::string(probe) + " belongs on a function's first instruction; it takes no offset",
                         "drop the offset, or use -k"));
    }
    if (spec.form == Spec::Form::module_address && request.chosen.empty() && is_function(request, spec.module)) {
        Error error{Error::Kind::usage,
                    spec.module + " is a function: a symbol and an address together are not one place",
                    "give SYMBOL+OFFSET, or MODULE:0xVADDR",
                    spec.text,
                    0,
                    static_cast<int>(spec.module.size())};
        return tl::unexpected(error);
    }
    return {};
}

bool looks_like_source(std::string_view name) {
    constexpr std::array<std::string_view, 10> endings{".c", ".cc",  ".cpp", ".cxx", ".C",
                                                       ".h", ".hpp", ".rs",  ".go",  ".S"};
    return std::any_of(endings.begin(), endings.end(), [name](std::string_view e) { return name.ends_with(e); });
}

/// `worker.c:do_work`: the name in place of a MODULE is a source file of the program. It will not be loaded later.
Status check_source(const Request &request) {
    const Spec &spec = request.spec;
    if (!request.chosen.empty() || !looks_like_source(spec.module)) return {};
    for (const Loaded &loaded : request.modules) {
        symbols::Dwarf *dwarf = loaded.is_program ? loaded.module->dwarf(symbols::DebugSource::local) : nullptr;
        if (!dwarf) continue;
        auto files = dwarf->files();
        bool known = std::any_of(files.begin(), files.end(), [&](const std::string &file) {
            return file == spec.module || file.ends_with("/" + spec.module);
        });
        if (!known) continue;
        std::string place = spec.text.substr(static_cast<std::size_t>(spec.symbol_column));
        return tl::unexpected(Error{Error::Kind::refused, spec.module + " is a source file, not a module",
                                    "give " + place + ", " + std::string(loaded.module->name()) + ":" + place + " or " +
                                        spec.module + ":LINE",
                                    spec.text, 0, static_cast<int>(spec.module.size())});
    }
    return {};
}

} // namespace

Result<Resolved> resolve(const Spec &spec, Kind kind, std::span<const Loaded> modules, Memory *memory,
                         const std::function<bool()> &gives_up) {
    Request request{spec, kind, modules, {}, memory, gives_up};
    for (const Loaded &loaded : modules)
        if (spec.module.empty() || names_module(spec.module, *loaded.module)) request.chosen.push_back(&loaded);
    if (auto status = check_request(request); !status) return tl::unexpected(status.error());
    if (!spec.module.empty() && request.chosen.empty()) {
        if (auto status = check_source(request); !status) return tl::unexpected(status.error());
        Resolved resolved;
        resolved.pending = true;
        resolved.near_module = near_module(request);
        return resolved;
    }
    switch (spec.form) {
    case Spec::Form::symbol: return resolve_symbol(request);
    case Spec::Form::line: return resolve_line(request);
    case Spec::Form::address:
    case Spec::Form::module_address: break;
    }
    return resolve_address(request);
}

} // namespace ktrace::probe
