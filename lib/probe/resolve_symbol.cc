// Symbols: all the functions that a name means, in all the modules that it may mean: exact names before globs, clones
// and inlined instances included, variables and stubs not.
#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "probe/resolve_parts.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/names/demangle.h"
#include "symbols/names/name_pattern.h"

namespace ktrace::probe {

namespace {

using symbols::NamePattern;
using symbols::Symbol;

/// A piece that a compiler has made of a function (`f.part.0`, `f.resume`), which the function calls: not what its name
/// means, unless the SPEC spells it out.
bool is_piece(const Request &request, const Symbol &symbol) {
    const symbols::CloneName clone = symbols::split_clone(symbol.name);
    const bool is_meant = request.spec.symbol.find(clone.of_coroutine ? clone.suffix : ".part") != std::string::npos;
    return clone.part && !is_meant;
}

/// The function's name, of a clone or a piece as well.
std::string whole_name(const Loaded &loaded, const Symbol &symbol) {
    std::string name(loaded.module->demangled(symbol, false));
    const std::string_view suffix = symbols::split_clone(symbol.name).suffix;
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    return name;
}

symbols::Dwarf *described(const Request &request, const Loaded &loaded) {
    const bool is_named = !request.spec.module.empty();
    return loaded.module->dwarf(is_named ? symbols::DebugSource::remote : symbols::DebugSource::local);
}

/// One search: the locations that a pattern finds, and what else it met.
class SymbolSearch {
  public:
    SymbolSearch(const Request &request, NamePattern pattern) : request_(request), pattern_(std::move(pattern)) {}

    Status run();
    Finding &finding() { return finding_; }
    bool empty() { return finding_.empty() && finding_.resolved().inlined_left_out == 0; }
    /// A variable that has the name, where no function does.
    const Loaded *variable_in() const { return variable_in_; }

  private:
    Status add_functions(const Loaded &loaded);
    Status add_pieces(const Loaded &loaded);
    Status add_function(const Loaded &loaded, const Symbol &symbol);
    Status add_ifunc(const Loaded &loaded, const Symbol &symbol);
    Status add_at(const Loaded &loaded, std::string_view name, std::uint64_t start, std::uint64_t end);
    void add_inlined(const Loaded &loaded);
    Status add_described(const Loaded &loaded);

    const Request &request_;
    NamePattern pattern_;
    Finding finding_;
    const Loaded *variable_in_ = nullptr;
    std::set<std::string, std::less<>> whole_; // of the module at hand: functions that are found, by name
    std::vector<const Symbol *> pieces_;       // and pieces of functions
};

Status SymbolSearch::run() {
    for (const Loaded *loaded : request_.chosen) {
        if (auto status = add_functions(*loaded); !status) return status;
        if (auto status = add_described(*loaded); !status) return status;
        if (has_inlined_wanted(request_, *loaded)) add_inlined(*loaded);
        if (auto status = add_pieces(*loaded); !status) return status;
    }
    return {};
}

Status SymbolSearch::add_functions(const Loaded &loaded) {
    const auto found = loaded.module->matching(pattern_, request_.gives_up);
    if (request_.gives_up && request_.gives_up())
        return fail(Error::Kind::given_up, "interrupted while " + request_.spec.text + " was looked for");
    for (const Symbol *symbol : found) {
        const std::string &version = request_.spec.version;
        if (!version.empty() && symbol->version != version) continue;
        if (!symbol->is_function()) {
            if (!variable_in_) variable_in_ = &loaded;
            continue;
        }
        if (is_piece(request_, *symbol)) {
            pieces_.push_back(symbol);
            continue;
        }
        whole_.insert(whole_name(loaded, *symbol));
        auto status = symbol->kind == Symbol::Kind::ifunc ? add_ifunc(loaded, *symbol) : add_function(loaded, *symbol);
        if (!status) return status;
    }
    return {};
}

/// Those of functions that have no code else: a call of one that has would count twice.
Status SymbolSearch::add_pieces(const Loaded &loaded) {
    for (const Symbol *piece : std::exchange(pieces_, {}))
        if (!whole_.contains(whole_name(loaded, *piece)))
            if (auto status = add_function(loaded, *piece); !status) return status;
    whole_.clear();
    return {};
}

Status SymbolSearch::add_function(const Loaded &loaded, const Symbol &symbol) {
    if (request_.kind != Kind::probe && symbols::split_clone(symbol.name).cold)
        return tl::unexpected(about_place(
            request_, Error::Kind::refused,
            std::string(symbol.name) + " is a part of a function, which is jumped to, not called", "use -k"));
    std::uint64_t end = symbol.size != 0 ? symbol.vaddr + symbol.size : loaded.module->function_end(symbol.vaddr);
    return add_at(loaded, loaded.module->demangled(symbol, false), symbol.vaddr, end);
}

Status SymbolSearch::add_ifunc(const Loaded &loaded, const Symbol &symbol) {
    const std::string_view name = loaded.module->demangled(symbol, false);
    auto found = implementations(request_, loaded, symbol);
    for (const auto &[owner, start] : found)
        if (auto status = add_at(*owner, name, start, owner->module->function_end(start)); !status) return status;
    if (!found.empty()) return {};
    Location resolver;
    resolver.module = loaded.module;
    resolver.vaddr = resolver.function = symbol.vaddr;
    resolver.function_end = loaded.module->function_end(symbol.vaddr);
    resolver.symbol = std::string(name);
    finding_.add_resolver(std::move(resolver));
    return {};
}

Status SymbolSearch::add_at(const Loaded &loaded, std::string_view name, std::uint64_t start, std::uint64_t end) {
    Location location;
    location.module = loaded.module;
    location.symbol = std::string(name);
    location.function = start;
    location.function_end = end;
    auto placed = at_offset(request_, std::move(location));
    if (!placed) return tl::unexpected(placed.error());
    finding_.add(std::move(*placed));
    return {};
}

/// Those that have this name in the source alone. Pieces and indirect functions are found by their symbols.
Status SymbolSearch::add_described(const Loaded &loaded) {
    if (!request_.spec.version.empty() || !is_described_wanted(request_, loaded)) return {};
    symbols::Dwarf *dwarf = described(request_, loaded);
    if (!dwarf) return {};
    for (const symbols::DescribedCode &code : dwarf->described(pattern_)) {
        const Symbol *symbol = loaded.module->covering(code.entry);
        if (symbol && (symbol->kind == Symbol::Kind::ifunc || is_piece(request_, *symbol) ||
                       symbols::split_clone(symbol->name).cold))
            continue;
        if (finding_.has(loaded, code.entry)) continue;
        whole_.insert(code.qualified);
        const std::string &name = code.qualified.empty() ? code.linkage : code.qualified;
        if (auto status = add_at(loaded, name, code.entry, std::max(code.end, code.entry + 1)); !status) return status;
    }
    return {};
}

void SymbolSearch::add_inlined(const Loaded &loaded) {
    symbols::Dwarf *dwarf = described(request_, loaded);
    if (!dwarf) return;
    for (const symbols::InlinedInstance &instance : dwarf->inlined(pattern_)) {
        if (!loaded.module->executable(instance.entry)) continue;
        if (request_.kind == Kind::ret) {
            finding_.resolved().inlined_left_out++;
            continue;
        }
        Location location = location_at(loaded, instance.entry);
        location.symbol = instance.qualified.empty() ? instance.name : instance.qualified;
        whole_.insert(location.symbol);
        location.offset = 0;
        location.instance = instance.instance;
        if (check_boundary(request_, location)) finding_.add(std::move(location));
    }
}

Error is_variable(const Request &request, const Loaded &loaded) {
    return about_place(request, Error::Kind::refused,
                       request.spec.symbol + " is a variable of " + std::string(loaded.module->name()) +
                           ", not a function",
                       "watch it with -w " + request.spec.symbol);
}

Error only_inlined(const Request &request, std::size_t instances) {
    return about_place(request, Error::Kind::refused,
                       request.spec.symbol + " has no code of its own: it is inlined, at " + std::to_string(instances) +
                           (instances == 1 ? " place" : " places") + ", and an inlined function does not return",
                       "use -k or -j");
}

/// Exact names first, then a glob.
Result<Resolved> search(const Request &request, const Loaded *&variable_in) {
    std::vector<NamePattern> patterns{NamePattern::exact(request.spec.symbol)};
    if (text::is_glob(request.spec.symbol)) patterns.push_back(NamePattern::glob(request.spec.symbol));
    for (NamePattern &pattern : patterns) {
        SymbolSearch search(request, std::move(pattern));
        if (auto status = search.run(); !status) return tl::unexpected(status.error());
        if (!variable_in) variable_in = search.variable_in();
        if (search.finding().empty() && !search.empty())
            return tl::unexpected(only_inlined(request, search.finding().resolved().inlined_left_out));
        if (!search.empty()) return search.finding().take(request.modules);
    }
    return Resolved{};
}

bool found_any(const Resolved &resolved) { return !resolved.locations.empty() || !resolved.ifunc_resolvers.empty(); }

/// Asks debuginfod for the symbols of the modules that the user named, else of the program.
bool fetch_more(const Request &request) {
    bool more = false;
    for (const Loaded *loaded : request.chosen)
        if (loaded->is_program || !request.spec.module.empty()) more = loaded->module->fetch_symbols() || more;
    return more;
}

/// Where a glob has found little, others may have been lost.
void note_little(const Request &request, Resolved &resolved) {
    constexpr std::size_t little = 3;
    if (!text::is_glob(request.spec.symbol) || resolved.locations.size() > little) return;
    if (std::string notice = stripped(request); !notice.empty()) resolved.notices.push_back(notice);
}

} // namespace

bool has_inlined_wanted(const Request &request, const Loaded &loaded) {
    return request.spec.offset == 0 && request.spec.version.empty() && is_described_wanted(request, loaded);
}

bool is_described_wanted(const Request &request, const Loaded &loaded) {
    return loaded.is_program || !request.spec.module.empty() || request.modules.size() == 1;
}

Result<Resolved> resolve_symbol(const Request &request) {
    const Loaded *variable_in = nullptr;
    auto resolved = search(request, variable_in);
    if (resolved && !found_any(*resolved) && !variable_in && fetch_more(request))
        resolved = search(request, variable_in);
    if (!resolved) return resolved;
    if (found_any(*resolved)) {
        note_little(request, *resolved);
        return resolved;
    }
    return tl::unexpected(variable_in ? is_variable(request, *variable_in) : unknown_symbol(request));
}

} // namespace ktrace::probe
