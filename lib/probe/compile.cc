#include "probe/compile.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "probe/compile_injections.h"
#include "program/expr/expr.h"
#include "program/lower/build.h"

namespace ktrace::probe {

namespace {

using program::Table;
using program::Tree;

/// The EXPRs of a command, parsed.
struct Expressions {
    std::optional<Tree> condition, table_of;
    std::vector<Tree> print, post_print, by, injected;
};

Status parse_into(std::vector<Tree> &trees, const std::vector<std::string> &texts) {
    for (const std::string &text : texts) {
        auto tree = program::parse_expr(text);
        if (!tree) return fail(tree.error());
        trees.push_back(std::move(*tree));
    }
    return {};
}

Status parse_into(std::optional<Tree> &tree, const std::string &text) {
    auto parsed = program::parse_expr(text);
    if (!parsed) return fail(parsed.error());
    tree = std::move(*parsed);
    return {};
}

/// --by alone means --count.
Table::Kind table_kind(const Actions &actions) {
    switch (actions.aggregate) {
    case Actions::Aggregate::count: return Table::Kind::count;
    case Actions::Aggregate::stats: return Table::Kind::stats;
    case Actions::Aggregate::hist: return Table::Kind::hist;
    case Actions::Aggregate::none: break;
    }
    return actions.by.empty() ? Table::Kind::none : Table::Kind::count;
}

bool looks_at_value(const Actions &actions) {
    return actions.aggregate == Actions::Aggregate::stats || actions.aggregate == Actions::Aggregate::hist;
}

std::string table_expression(const Actions &actions) {
    return actions.aggregate_of.empty() ? "duration" : actions.aggregate_of;
}

Result<Expressions> parse(const Actions &actions) {
    Expressions all;
    Status status;
    if (!actions.condition.empty()) status = parse_into(all.condition, actions.condition);
    if (status) status = parse_into(all.print, actions.print);
    if (status) status = parse_into(all.post_print, actions.post_print);
    if (status && looks_at_value(actions)) status = parse_into(all.table_of, table_expression(actions));
    if (status) status = parse_into(all.by, actions.by);
    std::vector<std::string> values;
    for (const Actions::Injection &injection : actions.injections) values.push_back(injection.value);
    if (status) status = parse_into(all.injected, values);
    if (!status) return fail(status.error());
    return all;
}

std::vector<const Tree *> pointers(const std::vector<Tree> &trees) {
    std::vector<const Tree *> all;
    for (const Tree &tree : trees) all.push_back(&tree);
    return all;
}

program::Selection selection_of(const Actions &actions) {
    return {actions.every, actions.chance, actions.seed.value_or(0), actions.first};
}

/// How often each EXPR was tried, and what was wrong where it never fitted. An EXPR is known by its use and its text:
/// the options of a command and a probe's own ones may share it.
class FitCount {
  public:
    void tried(const std::string &use) { ++entry(use).tried; }
    void misfit(const std::string &use, Error error) {
        Entry &known = entry(use);
        if (known.misfits++ == 0) known.error = std::move(error);
    }
    /// The error of the first one that fits nowhere.
    Status verdict() const {
        for (const Entry &each : entries_)
            if (each.tried != 0 && each.misfits >= each.tried) return fail(each.error);
        return {};
    }

  private:
    struct Entry {
        std::size_t tried = 0, misfits = 0;
        Error error;
    };
    Entry &entry(const std::string &use) {
        auto [known, is_new] = index_.try_emplace(use, entries_.size());
        if (is_new) entries_.emplace_back();
        return entries_[known->second];
    }
    std::map<std::string, std::size_t> index_;
    std::vector<Entry> entries_;
};

/// The use of each EXPR, with its text.
std::map<const Tree *, std::string> uses_of(const Actions &actions, const Expressions &all) {
    std::map<const Tree *, std::string> uses;
    if (all.condition) uses[&*all.condition] = "if " + actions.condition;
    if (all.table_of) uses[&*all.table_of] = "of " + table_expression(actions);
    for (const Tree &tree : all.print) uses[&tree] = "print " + tree.source;
    for (const Tree &tree : all.post_print) uses[&tree] = "post " + tree.source;
    for (const Tree &tree : all.by) uses[&tree] = "by " + tree.source;
    for (std::size_t i = 0; i < all.injected.size(); i++)
        uses[&all.injected[i]] = "set " + actions.injections[i].name + "=" + actions.injections[i].value;
    return uses;
}

/// Makes the programs of locations with the same options, one after the other.
class Compiler {
  public:
    /// `own`: where the actions are those of one probe, else nullptr. All is borrowed.
    Compiler(const Actions &actions, const OwnOptions *own, Expressions expressions, const CompileOptions &options,
             FitCount &fits)
        : actions_(actions), own_(own), expressions_(std::move(expressions)), options_(options), fits_(fits),
          uses_(uses_of(actions_, expressions_)) {}
    Compiler(const Compiler &) = delete;

    Compiled compile(const LocationRequest &request);

  private:
    program::Recipe recipe(const LocationRequest &request, LocationScope &entry, LocationScope &after) const;
    void note(const program::Recipe &recipe, const program::Built &built);

    const Actions &actions_;
    const OwnOptions *own_;
    const Expressions expressions_;
    const CompileOptions &options_;
    FitCount &fits_;
    const std::map<const Tree *, std::string> uses_;
    std::set<program::Program> images_; // equal ones once
};

program::Recipe Compiler::recipe(const LocationRequest &request, LocationScope &entry, LocationScope &after) const {
    program::Recipe recipe;
    recipe.kind = static_cast<char>(request.kind);
    recipe.entry = &entry;
    recipe.after = &after;
    if (expressions_.condition) recipe.condition = &*expressions_.condition;
    recipe.print = pointers(expressions_.print);
    recipe.post_print = pointers(expressions_.post_print);
    recipe.by = pointers(expressions_.by);
    recipe.post = actions_.post;
    recipe.regs = actions_.regs;
    recipe.stack = actions_.stack;
    recipe.table = table_kind(actions_);
    for (std::size_t i = 0; i < actions_.injections.size(); ++i)
        recipe.injections.push_back(make_injection(actions_, i, expressions_.injected[i], request.kind, entry, after));
    if (expressions_.table_of) recipe.table_of = &*expressions_.table_of;
    recipe.selection = selection_of(actions_);
    if (recipe.table != Table::Kind::none) return recipe;
    recipe.watched = request.watched;
    if (recipe.watched) entry.open_debug_information();
    const bool has_arguments = request.kind == Kind::entry || request.kind == Kind::ret;
    recipe.shows_arguments = has_arguments && actions_.print.empty() && !actions_.no_args;
    if (recipe.shows_arguments) recipe.arguments = entry.arguments();
    recipe.shows_result = request.kind == Kind::ret;
    if (recipe.shows_result) recipe.result = after.result();
    recipe.result_hex = recipe.result && after.is_only_declared(recipe.result->type);
    if (recipe.shows_result) recipe.error = after.error_of_result();
    return recipe;
}

void Compiler::note(const program::Recipe &recipe, const program::Built &built) {
    auto tried = [&](const Tree *tree) { fits_.tried(uses_.at(tree)); };
    if (recipe.condition) tried(recipe.condition);
    for (const Tree *tree : recipe.print) tried(tree);
    if (recipe.kind == 'k')
        for (const Tree *tree : recipe.post_print) tried(tree);
    if (recipe.table_of) tried(recipe.table_of);
    for (const Tree *tree : recipe.by) tried(tree);
    for (const program::Injection &injection : recipe.injections) tried(injection.value);
    for (const program::MisfitExpr &misfit : built.misfits)
        if (auto use = uses_.find(misfit.tree); use != uses_.end()) // else no option asks for it
            fits_.misfit(use->second, own_ ? own_->pointing(misfit.error) : misfit.error);
}

Compiled Compiler::compile(const LocationRequest &request) {
    const Location &at = request.location;
    bool entry_probe = request.kind == Kind::entry || request.kind == Kind::ret;
    LocationScope entry(at, request.bias, Instant::before, entry_probe, options_.modules, options_.memory);
    LocationScope after(at, request.bias, request.kind == Kind::ret ? Instant::at_return : Instant::after, false,
                        options_.modules, options_.memory, &entry);
    program::Recipe wanted = recipe(request, entry, after);
    program::Built built = program::build(wanted);
    note(wanted, built);

    Compiled compiled;
    compiled.program = *images_.insert(std::move(built.program)).first;
    program::LocationInfo &info = compiled.info;
    info.probe = request.number;
    info.kind = static_cast<char>(request.kind);
    info.symbol = at.symbol;
    info.offset = at.offset;
    if (at.module) info.module = at.module->name();
    info.address = at.vaddr + request.bias;
    info.injects = !wanted.injections.empty();
    info.full = actions_.full;
    info.result_void = wanted.shows_result && !wanted.result;
    for (std::size_t m = 0; m < program::moments; ++m) info.fields[m] = std::move(built.fields[m]);
    info.types = entry.types() ? entry.types() : after.types();
    return compiled;
}

} // namespace

Status check_expressions(const Actions &actions) {
    auto parsed = parse(actions);
    if (!parsed) return fail(parsed.error());
    return {};
}

bool wants_durations(const Actions &actions) {
    if (table_kind(actions) == Table::Kind::none) return true;
    auto all = parse(actions);
    if (!all) return true;
    auto in_tree = [](const Tree &tree) {
        return std::any_of(tree.nodes.begin(), tree.nodes.end(),
                           [](const program::Expr &e) { return e.kind == program::Expr::Kind::duration; });
    };
    auto in_one = [&](const std::optional<Tree> &tree) { return tree && in_tree(*tree); };
    auto in_any = [&](const std::vector<Tree> &trees) { return std::any_of(trees.begin(), trees.end(), in_tree); };
    return in_one(all->condition) || in_one(all->table_of) || in_any(all->print) || in_any(all->by) ||
           in_any(all->injected);
}

Result<std::vector<Compiled>> compile_all(const Actions &actions, std::span<const LocationRequest> requests,
                                          const CompileOptions &options) {
    FitCount fits;
    std::map<const OwnOptions *, std::unique_ptr<Compiler>> compilers;
    std::vector<Compiled> all;
    all.reserve(requests.size());
    for (const LocationRequest &request : requests) {
        std::unique_ptr<Compiler> &compiler = compilers[request.own];
        if (!compiler) {
            const Actions &wanted = request.own ? request.own->actions : actions;
            auto expressions = parse(wanted);
            if (!expressions) return fail(expressions.error());
            compiler = std::make_unique<Compiler>(wanted, request.own, std::move(*expressions), options, fits);
        }
        all.push_back(compiler->compile(request));
    }
    if (!options.additional)
        if (Status verdict = fits.verdict(); !verdict) return fail(verdict.error());
    return all;
}

program::ProbeStatePointer make_probe_state(const Actions &actions, std::shared_ptr<program::TableMemory> memory) {
    program::Selection selection = selection_of(actions);
    if (!actions.seed && actions.chance < 1.0) {
        std::random_device device;
        selection.seed = std::uint64_t{device()} << 32 | device();
    }
    std::string of = looks_at_value(actions) ? table_expression(actions) : "";
    return program::ProbeStatePointer(
        new program::ProbeState(selection, table_kind(actions), actions.by, of, std::move(memory)));
}

} // namespace ktrace::probe
