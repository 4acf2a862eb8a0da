#include "inspect/catalog.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "arch/host.h"
#include "base/text.h"
#include "os/proc/procfs.h"
#include "os/tracee/memory.h"
#include "probe/resolve.h"
#include "symbols/names/name_pattern.h"
#include "symbols/stripped.h"
#include "target/modules.h"

namespace ktrace::inspect {

namespace {

using symbols::Module;
using symbols::NamePattern;
using symbols::Symbol;

constexpr std::size_t most_suggestions = 3;

/// The request of a pattern: the same as that of a SPEC, so far as names go.
struct Wanted {
    std::string module;  // empty: any
    std::string name;    // empty: all
    std::string version; // empty: any
    NamePattern pattern = NamePattern::glob("*");

    bool fits(const Symbol &symbol) const {
        return (version.empty() || symbol.version == version) && pattern.matches(symbol.name);
    }
};

Result<Wanted> read_pattern(const std::string &pattern) {
    if (pattern.empty()) return Wanted{};
    auto spec = probe::parse_spec(pattern);
    if (!spec) return fail(spec.error());
    if (spec->form != probe::Spec::Form::symbol || spec->has_offset)
        return fail(Error::Kind::usage, "list looks for names, and `" + text::escape(pattern) + "' is none",
                    "name a function, or a glob: 'do_*', 'libc:open*'");
    return Wanted{spec->module, spec->symbol, spec->version, NamePattern::exact(spec->symbol)};
}

std::string versioned(std::string_view name, const Symbol &symbol) {
    std::string text(name);
    if (!symbol.version.empty() && !symbol.default_version) text += '@' + std::string(symbol.version);
    return text;
}

std::string declared(const std::string &type, const std::string &name) {
    if (name.empty()) return type;
    return type + (type.ends_with('*') || type.ends_with('&') ? "" : " ") + name;
}

/// The listing of one module.
class Listing {
  public:
    Listing(const CatalogModule &loaded, const Wanted &wanted, const std::function<void(const CatalogEntry &)> &show)
        : module_(*loaded.module), bias_(loaded.bias), wanted_(wanted), show_(show) {}

    /// Returns how many entries were shown.
    std::size_t functions(bool with_lines) {
        std::size_t shown = 0;
        std::set<std::pair<std::uint64_t, std::string>> seen;
        for (const Symbol &symbol : module_.symbols()) {
            if (!symbol.is_function() || !wanted_.fits(symbol)) continue;
            if (!seen.emplace(symbol.vaddr, versioned(symbol.name, symbol)).second) continue;
            function(symbol);
            if (with_lines) lines(symbol);
            shown++;
        }
        return shown;
    }

    std::size_t variables() {
        std::size_t shown = 0;
        for (const Symbol &symbol : module_.symbols()) {
            if (symbol.kind != Symbol::Kind::object || !wanted_.fits(symbol)) continue;
            emit(CatalogEntry::Kind::variable, symbol.vaddr,
                 fmt::format("{} (a variable, {} bytes)", module_.demangled(symbol, false), symbol.size), {});
            shown++;
        }
        return shown;
    }

    std::size_t inlines() {
        symbols::Dwarf *dwarf = module_.dwarf();
        if (!dwarf) return 0;
        std::vector<symbols::InlinedInstance> found = dwarf->inlined(wanted_.pattern);
        for (const symbols::InlinedInstance &each : found)
            emit(CatalogEntry::Kind::inlined, each.entry,
                 (each.qualified.empty() ? each.name : each.qualified) + " inlined into " + each.into, {});
        return found.size();
    }

  private:
    void emit(CatalogEntry::Kind kind, std::uint64_t vaddr, std::string text, std::string source) {
        show_({kind, vaddr + bias_, std::move(text), std::string(module_.name()), std::move(source)});
    }

    void function(const Symbol &symbol) {
        // At the address of an indirect function is its resolver, whose types are its own.
        symbols::Dwarf *dwarf = symbol.kind == Symbol::Kind::function ? module_.dwarf() : nullptr;
        const symbols::Function *known = dwarf ? dwarf->function_at(symbol.vaddr) : nullptr;
        if (known && known->entry != symbol.vaddr) known = nullptr;
        std::string name = versioned(module_.demangled(symbol, known == nullptr), symbol);
        std::string source = known && !known->file.empty() ? fmt::format("{}:{}", known->file, known->line) : "";
        emit(CatalogEntry::Kind::function, symbol.vaddr, known && known->typed ? signature(*known, name) : name,
             source);
    }

    /// The source lines of a function, each at the first instruction of its every run of code.
    void lines(const Symbol &symbol) {
        symbols::Dwarf *dwarf = module_.dwarf();
        if (!dwarf) return;
        std::string before;
        std::uint64_t end = module_.function_end(symbol.vaddr);
        std::vector<std::byte> code = module_.bytes_at(symbol.vaddr, end - symbol.vaddr);
        for (std::uint64_t offset = 0; offset < code.size();) {
            auto line = dwarf->line_at(symbol.vaddr + offset);
            std::string place = line && line->line > 0 ? fmt::format("{}:{}", line->file, line->line) : "";
            if (!place.empty() && place != before)
                emit(CatalogEntry::Kind::line, symbol.vaddr + offset,
                     fmt::format("{} {}+{:#x}", place, module_.demangled(symbol, false), offset), {});
            before = std::move(place);
            auto rest =
                std::span(code).subspan(offset, std::min<std::size_t>(code.size() - offset, arch::Host::longest));
            offset += std::max<std::uint64_t>(arch::Host::plan(rest, VirtAddr{symbol.vaddr + offset}).length, 1);
        }
    }

    const Module &module_;
    std::uint64_t bias_;
    const Wanted &wanted_;
    const std::function<void(const CatalogEntry &)> &show_;
};

std::vector<CatalogModule> wanted_modules(const std::vector<CatalogModule> &modules, const Wanted &wanted) {
    std::vector<CatalogModule> chosen;
    for (const CatalogModule &each : modules)
        if (wanted.module.empty() || probe::names_module(wanted.module, *each.module)) chosen.push_back(each);
    return chosen;
}

std::size_t list_modules(const std::vector<CatalogModule> &modules, const Wanted &wanted, const CatalogQuery &query,
                         const std::function<void(const CatalogEntry &)> &show) {
    std::size_t shown = 0;
    for (const CatalogModule &each : modules) {
        Listing listing(each, wanted, show);
        shown += listing.functions(query.lines);
        if (query.inlines) shown += listing.inlines();
    }
    return shown;
}

std::size_t list_variables(const std::vector<CatalogModule> &modules, const Wanted &wanted,
                           const std::function<void(const CatalogEntry &)> &show) {
    if (wanted.name.empty()) return 0;
    std::size_t shown = 0;
    for (const CatalogModule &each : modules) shown += Listing(each, wanted, show).variables();
    return shown;
}

tl::unexpected<Error> nothing_fits(const std::vector<CatalogModule> &modules, const Wanted &wanted) {
    std::vector<std::string_view> names;
    for (const CatalogModule &each : modules)
        for (const Symbol &symbol : each.module->symbols())
            if (symbol.is_function()) names.push_back(each.module->demangled(symbol, false));
    std::string where = modules.size() == 1 ? " in " + std::string(modules[0].module->name()) : "";
    std::string hint;
    for (const std::string &near : text::nearest(wanted.name, names, most_suggestions))
        hint += (hint.empty() ? "did you mean " : ", ") + near;
    if (!hint.empty()) hint += '?';
    if (std::string lost = modules.empty() ? "" : symbols::stripped_notice(*modules[0].module); !lost.empty())
        hint += (hint.empty() ? "" : " ") + lost;
    if (names.empty())
        return fail(Error::Kind::not_found, "there are no function symbols" + where,
                    "a stripped program needs its debug file; probe addresses instead");
    return fail(Error::Kind::not_found, "no function fits `" + text::escape(wanted.name) + "'" + where, hint);
}

Status require_debug_information(const std::vector<CatalogModule> &modules) {
    for (const CatalogModule &each : modules)
        if (each.module->dwarf()) return {};
    if (modules.empty()) return {};
    return fail(Error::Kind::refused,
                fmt::format("lines and inlined functions are not known: {}: {}", modules[0].module->name(),
                            modules[0].module->why_no_dwarf()),
                "compile it with -g, or install its debug symbols");
}

/// The memory of a process as far as it may be read: the vdso is known by it alone.
class Readable final : public Memory {
  public:
    explicit Readable(Pid pid) : memory_(os::ProcessMemory::open(pid)) {}
    std::size_t read(VirtAddr at, std::span<std::byte> into) override { return memory_ ? memory_->read(at, into) : 0; }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }

  private:
    Result<os::ProcessMemory> memory_;
};

tl::unexpected<Error> cannot_look(Pid pid, int error) {
    std::string process = std::to_string(pid.value);
    if (error == ENOENT || error == ESRCH)
        return fail(Error::Kind::not_found, "there is no process " + process, "pidof NAME prints the number");
    return fail(Error::Kind::denied, "may not look into process " + process + ": " + std::strerror(error),
                "become the user whose process it is, or root");
}

} // namespace

std::string signature(const symbols::Function &function, std::string_view name) {
    std::string parameters;
    for (const symbols::Parameter &each : function.parameters) {
        if (!parameters.empty()) parameters += ", ";
        parameters += declared(each.type ? each.type->name : "void", each.name);
    }
    if (function.variadic) parameters += parameters.empty() ? "..." : ", ...";
    if (parameters.empty()) parameters = "void";
    return fmt::format("{}({})", declared(function.result ? function.result->name : "void", std::string(name)),
                       parameters);
}

Status list_catalog(const std::vector<CatalogModule> &modules, const CatalogQuery &query,
                    const std::function<void(const CatalogEntry &)> &show) {
    auto wanted = read_pattern(query.pattern);
    if (!wanted) return fail(wanted.error());
    std::vector<CatalogModule> chosen = wanted_modules(modules, *wanted);
    if (chosen.empty() && !wanted->module.empty())
        return fail(Error::Kind::not_found, "no module is called `" + text::escape(wanted->module) + "'",
                    "without a module, all are looked through");
    if (query.lines || query.inlines)
        if (auto known = require_debug_information(chosen); !known) return known;
    if (list_modules(chosen, *wanted, query, show) > 0 || list_variables(chosen, *wanted, show) > 0) return {};
    wanted->pattern = NamePattern::glob(wanted->name);
    if (text::is_glob(wanted->name) &&
        (list_modules(chosen, *wanted, query, show) > 0 || list_variables(chosen, *wanted, show) > 0))
        return {};
    return nothing_fits(chosen, *wanted);
}

Result<std::vector<CatalogModule>> modules_of_process(Pid pid) {
    errno = 0;
    auto maps = os::read_maps(pid);
    if (!maps) return cannot_look(pid, errno);
    Readable memory(pid);
    target::ModuleCache cache;
    std::vector<std::string> unreadable;
    std::vector<CatalogModule> modules;
    for (target::LoadedModule &each : cache.modules_of(pid, *maps, {}, memory, unreadable))
        modules.push_back({std::move(each.module), each.bias});
    if (!modules.empty()) return modules;
    if (maps->empty())
        return fail(Error::Kind::refused, "process " + std::to_string(pid.value) + " has no program to look into",
                    "it has ended, or is a thread of the kernel");
    return fail(Error::Kind::refused, "no file of process " + std::to_string(pid.value) + " can be read" +
                                          (unreadable.empty() ? "" : ": " + unreadable[0]));
}

Result<std::vector<CatalogModule>> module_of_file(const std::string &path) {
    auto module = Module::open(path, path);
    if (!module) return fail(module.error());
    return std::vector<CatalogModule>{{std::move(*module), 0}};
}

} // namespace ktrace::inspect
