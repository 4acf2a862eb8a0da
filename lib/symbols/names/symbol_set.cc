#include "symbols/names/symbol_set.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "symbols/names/demangle.h"

namespace ktrace::symbols {

namespace {

/// After so many passes over the tables a sorted one pays.
constexpr unsigned passes_before_building = 24;

/// The order of symbols: by address, then the name that people use first: global, few underscores, not of an old
/// version.
auto rank(const Symbol &symbol) {
    std::size_t underscores = std::min(symbol.name.find_first_not_of('_'), symbol.name.size());
    bool mangled = symbol.name.starts_with("_Z") || symbol.name.starts_with("_R");
    return std::tuple(symbol.vaddr, !symbol.is_function(), !symbol.global, mangled ? 0 : underscores, symbol.size == 0,
                      !symbol.default_version, symbol.name.size(), symbol.name, symbol.version);
}

bool before(const Symbol &a, const Symbol &b) {
    if (a.vaddr != b.vaddr) return a.vaddr < b.vaddr;
    return rank(a) < rank(b);
}

/// How long a search goes on: until it is given up, which is asked behind each so many bytes of names.
class Patience {
  public:
    explicit Patience(const std::function<bool()> &gives_up) : gives_up_(gives_up) {}
    bool lasts(std::size_t bytes) {
        constexpr std::size_t between_questions = 1U << 20U; // some milliseconds of a glob with many stars
        looked_at_ += bytes;
        if (over_ || !gives_up_ || looked_at_ < between_questions) return !over_;
        looked_at_ = 0;
        over_ = gives_up_();
        return !over_;
    }

  private:
    const std::function<bool()> &gives_up_;
    std::size_t looked_at_ = 0;
    bool over_ = false;
};

/// One symbol as two tables have it: with and without its version, say.
bool same(const Symbol &a, const Symbol &b) {
    return a.vaddr == b.vaddr && a.name == b.name && a.is_function() == b.is_function() &&
           (a.version == b.version || a.version.empty() || b.version.empty());
}

void merge(Symbol &into, const Symbol &other) {
    if (into.version.empty()) {
        into.version = other.version;
        into.default_version = other.default_version;
    }
    into.size = std::max(into.size, other.size);
    into.global = into.global || other.global;
    if (other.kind == Symbol::Kind::ifunc) into.kind = other.kind;
}

void sort_and_merge(std::vector<Symbol> &symbols) {
    std::sort(symbols.begin(), symbols.end(), before);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < symbols.size(); i++) {
        // Doubles are near each other, but not always neighbours: the other table may call one of them local.
        std::size_t twin = kept;
        while (twin > 0 && symbols[twin - 1].vaddr == symbols[i].vaddr && kept - twin < 16 &&
               !same(symbols[twin - 1], symbols[i]))
            twin--;
        bool doubled = twin > 0 && same(symbols[twin - 1], symbols[i]);
        if (doubled)
            merge(symbols[twin - 1], symbols[i]);
        else
            symbols[kept++] = symbols[i];
    }
    symbols.resize(kept);
}

} // namespace

void SymbolSet::add(SymbolTable table) {
    tables_.push_back(std::move(table));
    forget();
}

void SymbolSet::add(std::vector<Symbol> described) {
    described_ = std::move(described);
    forget();
}

void SymbolSet::forget() {
    built_ = false;
    by_name_.clear();
    mangled_.clear();
    functions_.clear();
    reach_.clear();
}

std::vector<const Symbol *> SymbolSet::keep(std::vector<Symbol> found) const {
    sort_and_merge(found);
    std::vector<const Symbol *> kept;
    kept.reserve(found.size());
    for (Symbol &symbol : found) {
        found_.push_back(symbol);
        kept.push_back(&found_.back());
    }
    return kept;
}

template <class Wanted> std::vector<const Symbol *> SymbolSet::search(Wanted &&wanted) const {
    std::vector<const Symbol *> matching;
    if (!built_ && ++passes_ > passes_before_building) build();
    if (built_) {
        for (const Symbol &symbol : generations_.back())
            if (wanted(symbol.name)) matching.push_back(&symbol);
        return matching;
    }
    std::vector<Symbol> found;
    for (const SymbolTable &table : tables_) {
        table.visit(wanted, [&](const Symbol &symbol) { found.push_back(symbol); });
        // A pass over all names of a process's libraries must not make them all resident.
        constexpr std::size_t worth_it = 1U << 20U;
        if (table.strings().size() > worth_it) table.file().image().forget(table.strings());
    }
    std::copy_if(described_.begin(), described_.end(), std::back_inserter(found),
                 [&](const Symbol &symbol) { return wanted(symbol.name); });
    return keep(std::move(found));
}

void SymbolSet::sort_names() const {
    if (!by_name_.empty()) return;
    const std::vector<Symbol> &table = generations_.back();
    by_name_.resize(table.size());
    for (std::uint32_t i = 0; i < table.size(); i++) {
        by_name_[i] = i;
        if (is_mangled(table[i].name) || has_brackets(table[i].name)) mangled_.push_back(i);
    }
    std::sort(by_name_.begin(), by_name_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::tie(table[a].name, a) < std::tie(table[b].name, b);
    });
}

/// Adds the symbols whose names begin so, or are so.
void SymbolSet::add_named(std::string_view begin, bool whole, std::vector<std::uint32_t> &found) const {
    const std::vector<Symbol> &table = generations_.back();
    auto at =
        std::partition_point(by_name_.begin(), by_name_.end(), [&](std::uint32_t i) { return table[i].name < begin; });
    for (; at != by_name_.end(); ++at) {
        std::string_view name = table[*at].name;
        if (whole ? name != begin : !name.starts_with(begin)) break;
        found.push_back(*at);
    }
}

/// From the table: plain names by their order, clones and versions of them, too; mangled ones each.
std::vector<const Symbol *> SymbolSet::matching_exactly(const NamePattern &pattern) const {
    sort_names();
    std::vector<std::uint32_t> candidates;
    add_named(pattern.text(), true, candidates);
    for (char behind : {'.', '@'}) add_named(pattern.text() + behind, false, candidates);
    candidates.insert(candidates.end(), mangled_.begin(), mangled_.end());
    const std::vector<Symbol> &table = generations_.back();
    std::erase_if(candidates, [&](std::uint32_t i) { return !pattern.matches(table[i].name); });
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    std::vector<const Symbol *> found;
    for (std::uint32_t i : candidates) found.push_back(&table[i]);
    return found;
}

std::vector<const Symbol *> SymbolSet::matching(const NamePattern &pattern,
                                                const std::function<bool()> &gives_up) const {
    if (built_ && !pattern.is_glob()) return matching_exactly(pattern);
    Patience patience(gives_up);
    return search([&](std::string_view name) { return patience.lasts(name.size()) && pattern.matches(name); });
}

std::vector<const Symbol *> SymbolSet::named(std::string_view name) const {
    if (built_) {
        sort_names();
        std::vector<std::uint32_t> indexes;
        add_named(name, true, indexes);
        std::vector<const Symbol *> found;
        for (std::uint32_t i : indexes) found.push_back(&generations_.back()[i]);
        return found;
    }
    bool all_hashed = std::all_of(tables_.begin(), tables_.end(), [](const SymbolTable &t) { return t.hashed(); });
    if (!all_hashed) {
        return search([&](std::string_view candidate) {
            return candidate.starts_with(name) && (candidate.size() == name.size() || candidate[name.size()] == '@');
        });
    }
    std::vector<Symbol> found;
    for (const SymbolTable &table : tables_)
        for (std::uint64_t index : table.lookup(name))
            if (auto symbol = table.symbol(index)) found.push_back(*symbol);
    std::copy_if(described_.begin(), described_.end(), std::back_inserter(found),
                 [&](const Symbol &symbol) { return symbol.name == name; });
    return keep(std::move(found));
}

void SymbolSet::build() const {
    if (built_) return;
    std::vector<Symbol> symbols = described_;
    std::size_t most = described_.size();
    for (const SymbolTable &table : tables_) most += table.count();
    symbols.reserve(most);
    for (const SymbolTable &table : tables_)
        table.visit([](std::string_view) { return true; }, [&](const Symbol &symbol) { symbols.push_back(symbol); });
    sort_and_merge(symbols);
    symbols.shrink_to_fit();
    generations_.push_back(std::move(symbols));
    built_ = true;
}

std::span<const Symbol> SymbolSet::all() const {
    build();
    return generations_.back();
}

void SymbolSet::build_functions() const {
    build();
    if (!functions_.empty()) return;
    const std::vector<Symbol> &table = generations_.back();
    for (std::uint32_t i = 0; i < table.size(); i++) {
        if (!table[i].is_function()) continue;
        if (!functions_.empty() && table[functions_.back()].vaddr == table[i].vaddr) continue;
        functions_.push_back(i);
        std::uint64_t end = table[i].vaddr + table[i].size;
        reach_.push_back(reach_.empty() ? end : std::max(reach_.back(), end));
    }
}

const Symbol *SymbolSet::covering(std::uint64_t vaddr) const {
    build_functions();
    const std::vector<Symbol> &table = generations_.back();
    auto behind = std::partition_point(functions_.begin(), functions_.end(),
                                       [&](std::uint32_t i) { return table[i].vaddr <= vaddr; });
    if (behind == functions_.begin()) return nullptr;
    auto nearest = static_cast<std::size_t>(behind - functions_.begin()) - 1;
    constexpr int deepest = 64; // functions that overlap: assembly with labels inside
    int steps = 0;
    for (std::size_t i = nearest + 1; i-- > 0 && reach_[i] > vaddr && steps < deepest; steps++) {
        const Symbol &symbol = table[functions_[i]];
        if (vaddr - symbol.vaddr < symbol.size) return &symbol;
    }
    const Symbol &before_it = table[functions_[nearest]];
    return before_it.size == 0 ? &before_it : nullptr;
}

const Symbol *SymbolSet::function_after(std::uint64_t vaddr) const {
    build_functions();
    const std::vector<Symbol> &table = generations_.back();
    auto behind = std::partition_point(functions_.begin(), functions_.end(),
                                       [&](std::uint32_t i) { return table[i].vaddr <= vaddr; });
    return behind == functions_.end() ? nullptr : &table[*behind];
}

} // namespace ktrace::symbols
