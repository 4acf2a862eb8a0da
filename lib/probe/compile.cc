#include "probe/compile.h"

#include <algorithm>
#include <map>
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

/// How often each EXPR was tried, and what was wrong where it never fitted.
class FitCount {
  public:
    void tried(const Tree *tree) { ++entries_[tree].tried; }
    void misfit(const Tree *tree, const Error &error) {
        Entry &entry = entries_[tree];
        if (entry.misfits++ == 0) entry.error = error;
    }
    Status verdict() const {
        for (const auto &[tree, entry] : entries_)
            if (entry.tried != 0 && entry.misfits >= entry.tried) return fail(entry.error);
        return {};
    }

  private:
    struct Entry {
        std::size_t tried = 0, misfits = 0;
        Error error;
    };
    std::map<const Tree *, Entry> entries_;
};

/// Makes the programs of one command, a location after the other.
class Compiler {
  public:
    Compiler(const Actions &actions, const Expressions &expressions, const CompileOptions &options)
        : actions_(actions), expressions_(expressions), options_(options) {}

    Compiled compile(const LocationRequest &request);
    Status verdict() const { return fits_.verdict(); }

  private:
    program::Recipe recipe(const LocationRequest &request, LocationScope &entry, LocationScope &after) const;
    void note(const program::Recipe &recipe, const program::Built &built);

    const Actions &actions_;
    const Expressions &expressions_;
    const CompileOptions &options_;
    FitCount fits_;
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
        recipe.injections.push_back(
            make_injection(actions_.injections[i], expressions_.injected[i], request.kind, entry, after));
    if (expressions_.table_of) recipe.table_of = &*expressions_.table_of;
    recipe.selection = selection_of(actions_);
    if (recipe.table != Table::Kind::none) return recipe;
    recipe.watched = request.watched;
    if (recipe.watched) entry.open_debug_information();
    recipe.shows_arguments = request.kind == Kind::entry || (request.kind == Kind::ret && options_.arguments_at_return);
    if (recipe.shows_arguments) recipe.arguments = entry.arguments();
    recipe.shows_result = request.kind == Kind::ret;
    if (recipe.shows_result) recipe.result = after.result();
    return recipe;
}

void Compiler::note(const program::Recipe &recipe, const program::Built &built) {
    if (recipe.condition) fits_.tried(recipe.condition);
    for (const Tree *tree : recipe.print) fits_.tried(tree);
    if (recipe.kind == 'k')
        for (const Tree *tree : recipe.post_print) fits_.tried(tree);
    if (recipe.table_of) fits_.tried(recipe.table_of);
    for (const Tree *tree : recipe.by) fits_.tried(tree);
    for (const program::Injection &injection : recipe.injections) fits_.tried(injection.value);
    for (const program::MisfitExpr &misfit : built.misfits) fits_.misfit(misfit.tree, misfit.error);
}

Compiled Compiler::compile(const LocationRequest &request) {
    const Location &at = request.location;
    bool entry_probe = request.kind == Kind::entry || request.kind == Kind::ret;
    LocationScope entry(at, request.bias, Instant::before, entry_probe, options_.modules);
    LocationScope after(at, request.bias, request.kind == Kind::ret ? Instant::at_return : Instant::after, false,
                        options_.modules, &entry);
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
    auto expressions = parse(actions);
    if (!expressions) return fail(expressions.error());
    Compiler compiler(actions, *expressions, options);
    std::vector<Compiled> all;
    all.reserve(requests.size());
    for (const LocationRequest &request : requests) all.push_back(compiler.compile(request));
    if (!options.additional)
        if (Status verdict = compiler.verdict(); !verdict) return fail(verdict.error());
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
