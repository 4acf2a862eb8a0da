// The text for a symbol that no module has: where else it is, which versions there are, what is spelled nearly like
// it.
#include <algorithm>
#include <deque>
#include <unordered_set>

#include "base/text.h"
#include "probe/resolve_parts.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/names/demangle.h"
#include "symbols/names/name_pattern.h"
#include "symbols/stripped.h"

namespace ktrace::probe {

namespace {

using symbols::Symbol;

/// Names of functions as users write them, each once. Owns the demangled ones.
class Names {
  public:
    explicit Names(std::string_view wanted) : wanted_(wanted) {}

    void add(const symbols::Module &module) {
        for (const Symbol &symbol : module.symbols()) {
            if (!symbol.is_function()) continue;
            auto clone = symbols::split_clone(symbol.name);
            // Reserved names are rarely meant, unless one begins like one.
            if (symbols::is_mangled(clone.base))
                add_mangled(clone.base);
            else if (!clone.base.starts_with("__") || wanted_.starts_with('_'))
                add_plain(clone.base);
        }
    }
    /// Those that the debug information has: functions without code of their own, which are inlined everywhere.
    void add(symbols::Dwarf &dwarf) {
        for (std::string &name : dwarf.function_names()) add_plain(texts_.emplace_back(std::move(name)));
    }
    std::vector<std::string> nearest(std::size_t most) const { return text::nearest(wanted_, all_, most); }

  private:
    void add(std::string_view name) {
        if (seen_.insert(name).second) all_.push_back(name);
    }
    void add_plain(std::string_view name) {
        add(symbols::has_brackets(name) ? texts_.emplace_back(symbols::without_brackets(name)) : name);
    }
    void add_mangled(std::string_view name) {
        constexpr std::size_t most_demangled = 100'000; // some 0.2 s
        if (texts_.size() >= most_demangled) return;
        auto text = symbols::demangle(name, symbols::Spelling::name);
        if (text) add(texts_.emplace_back(std::move(*text)));
    }

    std::string_view wanted_;
    std::deque<std::string> texts_;
    std::vector<std::string_view> all_;
    std::unordered_set<std::string_view> seen_;
};

/// Is it stripped, and does it export nothing that is spelled nearly like what is wanted?
bool may_have_lost(const symbols::Module &module, std::string_view wanted) {
    if (!module.is_stripped()) return false;
    Names exported(wanted);
    exported.add(module);
    return exported.nearest(1).empty();
}

/// Versions that the modules have of the symbol.
std::vector<std::string> versions(const Request &request) {
    std::vector<std::string> found;
    for (const Loaded *loaded : request.chosen)
        for (const Symbol *symbol : loaded->module->named(request.spec.symbol))
            if (symbol->is_function() && !symbol->version.empty()) found.emplace_back(symbol->version);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

/// Modules other than the one that the user named that have the symbol.
std::vector<std::string> elsewhere(const Request &request) {
    std::vector<std::string> found;
    auto pattern = symbols::NamePattern::exact(request.spec.symbol);
    for (const Loaded &loaded : request.modules) {
        auto matching = loaded.module->matching(pattern);
        if (std::any_of(matching.begin(), matching.end(), [](const Symbol *s) { return s->is_function(); }))
            found.emplace_back(loaded.module->name());
    }
    return found;
}

std::string where(const Request &request) {
    if (request.chosen.empty()) return "what is loaded";
    if (!request.spec.module.empty() || request.modules.size() == 1)
        return std::string(request.chosen.front()->module->name());
    std::size_t libraries = request.modules.size() - 1;
    std::string_view program = request.modules.front().module->name();
    for (const Loaded &loaded : request.modules)
        if (loaded.is_program) program = loaded.module->name();
    return std::string(program) + " and its " + std::to_string(libraries) +
           (libraries == 1 ? " library" : " libraries");
}

std::string hint(const Request &request) {
    const Spec &spec = request.spec;
    if (!spec.version.empty())
        if (auto found = versions(request); !found.empty()) return "there is " + spec.symbol + "@" + listed(found, 4);
    if (!spec.module.empty())
        if (auto found = elsewhere(request); !found.empty())
            return listed(found, 3) + (found.size() == 1 ? " has it" : " have it");
    Names names(spec.symbol);
    for (const Loaded *loaded : request.chosen) {
        names.add(*loaded->module);
        if (!has_inlined_wanted(request, *loaded)) continue;
        if (symbols::Dwarf *dwarf = loaded->module->dwarf(symbols::DebugSource::local)) names.add(*dwarf);
    }
    std::string said;
    if (auto near = names.nearest(3); !near.empty()) said = "did you mean " + listed(near, 3) + "?";
    for (const Loaded *loaded : request.chosen)
        if ((loaded->is_program || request.chosen.size() == 1) && may_have_lost(*loaded->module, spec.symbol)) {
            std::string name(loaded->module->name());
            return said + (said.empty() ? "" : " ") + symbols::stripped_notice(*loaded->module) +
                   "; probe an address (" + name + ":0xVADDR), or install its debug symbols";
        }
    return said.empty() ? "`ktrace list` shows what can be probed" : said;
}

} // namespace

std::string near_module(const Request &request) {
    auto stem = [](std::string_view name) { return name.substr(0, name.find(".so")); };
    std::vector<std::string_view> stems;
    for (const Loaded &loaded : request.modules) stems.push_back(stem(loaded.module->name()));
    const auto near = text::nearest(stem(text::base_name(request.spec.module)), stems, 4);
    const std::vector<std::string> having = elsewhere(request);
    for (const std::string &name : having)
        if (std::find(near.begin(), near.end(), stem(name)) != near.end()) return name;
    if (near.empty()) return having.size() == 1 ? having.front() : "";
    auto found = std::find(stems.begin(), stems.end(), near.front());
    return std::string(request.modules[static_cast<std::size_t>(found - stems.begin())].module->name());
}

std::string stripped(const Request &request) {
    for (const Loaded *loaded : request.chosen)
        if (loaded->is_program || request.chosen.size() == 1)
            if (std::string notice = symbols::stripped_notice(*loaded->module); !notice.empty()) return notice;
    return {};
}

Error unknown_symbol(const Request &request) {
    const Spec &spec = request.spec;
    bool glob = text::is_glob(spec.symbol);
    std::string name = spec.version.empty() ? spec.symbol : spec.symbol + "@" + spec.version;
    std::string message = glob ? "no function of " + where(request) + " matches " + name
                               : "no function " + name + " in " + where(request);
    Error error = about_place(request, Error::Kind::not_found, message, glob ? stripped(request) : hint(request));
    std::size_t width = name.size();
    error.width = static_cast<int>(std::min(width, spec.text.size() - static_cast<std::size_t>(spec.symbol_column)));
    return error;
}

} // namespace ktrace::probe
