#include "check.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "usage.h"
#include "values.h"
#include "words.h"

namespace ktrace::cli {

namespace {

using probe::Actions;
using Format = trace::Config::Format;

/// True where this holds for what is done at some probe.
template <class Holds> bool any_actions(const Invocation &into, Holds holds) {
    return std::any_of(into.config.probes.begin(), into.config.probes.end(), [&](const probe::Probe &probe) {
        return holds(probe.own ? probe.own->actions : into.config.actions);
    });
}

bool has_table(const Actions &actions) { return actions.aggregate != Actions::Aggregate::none && !actions.silent; }

bool has_stacks(const Actions &actions) {
    return std::any_of(actions.by.begin(), actions.by.end(),
                       [](const std::string &by) { return by == "stack" || by.starts_with("stack("); });
}

bool has_events(const Actions &actions) { return actions.aggregate == Actions::Aggregate::none; }

/// Each format has something to show.
Status check_format(const Invocation &into) {
    switch (into.config.format) {
    case Format::text:
    case Format::json: return {};
    case Format::csv:
        if (any_actions(into, has_table)) return {};
        return usage("--format csv has tables alone", "--count, --stats and --hist make one");
    case Format::folded:
        if (any_actions(into, has_stacks)) return {};
        return usage("--format folded has stacks alone", "--by stack counts them");
    case Format::chrome:
        if (any_actions(into, has_events) || !into.config.plugins.empty()) return {};
        return usage("--format chrome has events alone, and these probes make tables",
                     "leave out --count, --stats, --hist and --by");
    }
    return {};
}

Status check_report(const Invocation &into) {
    if (into.config.report.empty() || !into.config.expectations.empty()) return {};
    return usage("--report does nothing without an expectation", "give one with --expect");
}

/// --sort, --top and --interval are of tables.
Status check_tables(const Invocation &into) {
    if (any_actions(into, has_table)) return {};
    for (const char *option : {"sort", "top", "interval"})
        if (std::any_of(into.given.begin(), into.given.end(), [&](const auto &each) { return each.name == option; }))
            return usage(std::string("--") + option + " does nothing without a table",
                         "--count, --stats and --hist make one");
    return {};
}

Status check_tracing(Invocation &into) {
    const trace::Config &config = into.config;
    if (config.probes.empty() && config.plugins.empty()) {
        if (into.command == Command::attach) return {}; // attach says what there is in the process
        return usage("no probe is given", "say what with -k, -j, -r or -w, for example --ret main");
    }
    std::vector<probe::Kind> kinds;
    for (const probe::Probe &each : config.probes)
        if (!each.own) kinds.push_back(each.kind);
    const bool applies = !kinds.empty() || config.probes.empty();
    if (applies)
        if (auto checked = check_actions(into.config.actions, kinds); !checked) return checked;
    if (auto checked = check_format(into); !checked) return checked;
    if (auto checked = check_report(into); !checked) return checked;
    return check_tables(into);
}

std::string hint_for_process_alone(const std::string &word) {
    return "a process goes behind -p: -p " + text::escape(word);
}

/// A guess for a word that attach does not take.
std::string hint_for_stray(const Invocation &into, const std::string &word) {
    if (std::string hint = hint_for_value_apart(into.words, into.command, word); !hint.empty()) return hint;
    if (into.processes.empty() || is_number(word)) return hint_for_process_alone(word);
    if (into.config.probes.empty())
        return "a probe goes behind -k, -j, -r or -w, for example --ret " + text::escape(word);
    return "to start a program: ktrace run PROBE... PROGRAM [ARG...]";
}

Status check_attach(Invocation &into) {
    if (!into.operands.empty())
        return usage("attach does not take `" + text::escape(into.operands[0]) + "'",
                     hint_for_stray(into, into.operands[0]));
    if (into.processes.empty()) return usage("attach needs a process: -p PID, or -p NAME");
    return check_tracing(into);
}

/// stack and profile.
Status check_looking(const Invocation &into) {
    const std::string name = into.command == Command::stack ? "stack" : "profile";
    if (!into.operands.empty())
        return usage(name + " does not take `" + text::escape(into.operands[0]) + "'",
                     hint_for_process_alone(into.operands[0]));
    if (into.processes.empty()) return usage(name + " needs a process: -p PID, or -p NAME");
    return {};
}

Status check_stack(const Invocation &into) {
    if (auto checked = check_looking(into); !checked) return checked;
    if (into.config.format != Format::text && into.config.format != Format::json)
        return usage("stack has the formats text and json");
    return {};
}

Status check_profile(const Invocation &into) {
    if (auto checked = check_looking(into); !checked) return checked;
    const bool is_graph = into.config.output.ends_with(".svg");
    const Format format = into.config.format;
    if (format == Format::csv || format == Format::chrome)
        return usage("profile has the formats text, json and folded");
    if (is_graph && format != Format::text) return usage("-o FILE.svg is a flame graph, and has no --format");
    if (into.profile.waiting && !is_graph && format != Format::folded)
        return usage("--waiting is of a flame graph (-o FILE.svg) or of --format folded", "the tables have both");
    return {};
}

Status check_run(Invocation &into) {
    trace::Config &config = into.config;
    if (config.program.empty()) return usage("run needs a program: ktrace run PROBE... PROGRAM [ARG...]");
    const std::string program = text::escape(config.program[0]);
    std::vector<std::string> words = into.words;
    words.push_back(config.program[0]); // it may have been meant for a value
    config.program_hint = hint_for_value_apart(words, Command::run, config.program[0]);
    if (config.probes.empty() && config.plugins.empty())
        return usage("there is no probe before `" + program + "'",
                     config.program_hint.empty() ? "probes stand before the program: ktrace run --ret main " + program
                                                 : config.program_hint);
    return check_tracing(into);
}

Status check_list(Invocation &into) {
    std::size_t most = into.processes.empty() ? 2 : 1;
    if (into.processes.size() > 1) return usage("list looks into one process at a time");
    if (into.processes.empty() && into.operands.empty())
        return usage("list needs a process or a file: ktrace list (-p PID | FILE) [PATTERN]");
    if (into.operands.size() > most)
        return usage("list takes one pattern, and `" + text::escape(into.operands[most]) + "' is one too many",
                     "quote a pattern, so that the shell does not expand it");
    if (most == 2) into.list.file = into.operands[0];
    if (into.operands.size() == most) into.list.pattern = into.operands.back();
    return {};
}

using Verb = trace::Order::Verb;

struct VerbName {
    std::string_view name;
    Verb verb;
    bool takes_names;
};
constexpr std::array<VerbName, 8> verbs{{{"list", Verb::list, false},
                                         {"stats", Verb::stats, false},
                                         {"add", Verb::add, false},
                                         {"remove", Verb::remove, true},
                                         {"enable", Verb::enable, true},
                                         {"disable", Verb::disable, true},
                                         {"on", Verb::on, false},
                                         {"off", Verb::off, false}}};

Result<VerbName> find_verb(const std::vector<std::string> &operands) {
    constexpr const char *all = "there are list, stats, add, remove, enable, disable, on and off";
    if (operands.empty()) return usage("ctl needs to know what to do", all);
    std::vector<std::string_view> names;
    for (const VerbName &each : verbs) {
        if (operands[0] == each.name) return each;
        names.push_back(each.name);
    }
    std::string hint = is_number(operands[0]) ? hint_for_process_alone(operands[0]) : std::string();
    if (auto near = text::nearest(operands[0], names, 1); !near.empty()) hint = "did you mean " + near[0] + "?";
    return usage("ctl cannot `" + text::escape(operands[0]) + "'", hint.empty() ? all : hint);
}

/// The options that are not about the process are those of `add`; `stats` has a format, and `list` may be verbose.
Status check_options_of(const VerbName &verb, const Invocation &into) {
    for (const auto &[name, value] : into.given) {
        if (name == "pid") continue;
        bool fits = verb.verb == Verb::add;
        if (name == "format") fits = verb.verb == Verb::stats;
        if (name == "verbose") fits = verb.verb == Verb::list;
        if (!fits) return usage("ctl " + std::string(verb.name) + " does not take --" + name);
    }
    return {};
}

Status check_ctl(Invocation &into) {
    auto verb = find_verb(into.operands);
    if (!verb) return fail(verb.error());
    if (into.processes.size() != 1) return usage("ctl needs one process: -p PID");
    if (auto options = check_options_of(*verb, into); !options) return options;
    std::string name(verb->name);
    trace::Order &order = into.order;
    order.names.assign(into.operands.begin() + 1, into.operands.end());
    if (verb->takes_names && order.names.empty())
        return usage("ctl " + name + " needs the number of a probe, or its SPEC as it was given",
                     "ktrace ctl -p PID stats shows the numbers");
    if (!verb->takes_names && !order.names.empty()) {
        std::string hint = hint_for_value_apart(into.words, into.command, order.names[0]);
        if (hint.empty() && verb->verb == Verb::add) hint = "say what to probe with -k, -j, -r or -w";
        return usage("ctl " + name + " does not take `" + text::escape(order.names[0]) + "'", hint);
    }
    if (!into.config.expectations.empty())
        return usage("ctl does not take --expect", "that is for the whole trace when it is started");
    if (into.config.format != trace::Config::Format::text && into.config.format != trace::Config::Format::json)
        return usage("ctl stats has the formats text and json");
    if (verb->verb == Verb::add)
        if (auto checked = check_tracing(into); !checked) return checked;
    order.verb = verb->verb;
    order.probes = into.config.probes;
    order.actions = into.config.actions;
    order.allow_missing = into.config.allow_missing;
    order.format = into.config.format;
    order.verbose = into.config.verbose > 0;
    return {};
}

Status check_diff(const Invocation &into) {
    if (into.operands.size() != 2)
        return usage("diff takes two files: ktrace diff OLD.json NEW.json",
                     "ktrace writes them with --format json -o FILE");
    if (into.config.format == Format::folded || into.config.format == Format::chrome)
        return usage("diff has the formats text, json and csv");
    return check_report(into);
}

Status check_repair(const Invocation &into) {
    if (!into.operands.empty())
        return usage("repair does not take `" + text::escape(into.operands[0]) + "'",
                     hint_for_process_alone(into.operands[0]));
    if (into.processes.size() != 1) return usage("repair needs one process: -p PID");
    return {};
}

Status check_plugin(const Invocation &into) {
    if (into.operands.empty() || into.operands[0] != "build")
        return usage("plugin needs to know what to do: ktrace plugin build FILE.c [-o FILE.so]");
    if (into.operands.size() != 2)
        return usage("plugin build takes one source file: ktrace plugin build FILE.c [-o FILE.so]");
    return {};
}

} // namespace

Status check_actions(Actions &actions, const std::vector<probe::Kind> &kinds) {
    if (!actions.by.empty() && actions.aggregate == Actions::Aggregate::none)
        actions.aggregate = Actions::Aggregate::count;
    const bool measures =
        actions.aggregate == Actions::Aggregate::stats || actions.aggregate == Actions::Aggregate::hist;
    const bool only_returns = !kinds.empty() && std::all_of(kinds.begin(), kinds.end(),
                                                            [](probe::Kind kind) { return kind == probe::Kind::ret; });
    if (measures && actions.aggregate_of.empty() && !only_returns)
        return usage("--stats and --hist need an expression where there are other probes than -r",
                     "for example --hist=arg0; or use -r alone to measure the duration");
    const bool has_instruction = std::find(kinds.begin(), kinds.end(), probe::Kind::probe) != kinds.end();
    if (!actions.post_print.empty() && !has_instruction)
        return usage("--post has no event to show an expression with where there is no -k",
                     "--print shows values with the events of the others");
    auto injects = [&](Actions::Injection::Kind kind) {
        return std::any_of(actions.injections.begin(), actions.injections.end(),
                           [kind](const Actions::Injection &each) { return each.kind == kind; });
    };
    using Injected = Actions::Injection::Kind;
    if (injects(Injected::error) && !injects(Injected::skip) && !injects(Injected::result))
        return usage("--set-errno goes with --skip or --set-ret", "for example --skip=-1 --set-errno ENOSPC");
    if (actions.seed && actions.chance >= 1.0) return usage("--seed does nothing without --chance");
    return {};
}

Status check(Invocation &into) {
    switch (into.command) {
    case Command::attach: return check_attach(into);
    case Command::run: return check_run(into);
    case Command::stack: return check_stack(into);
    case Command::profile: return check_profile(into);
    case Command::list: return check_list(into);
    case Command::ctl: return check_ctl(into);
    case Command::diff: return check_diff(into);
    case Command::repair: return check_repair(into);
    case Command::doctor:
        if (!into.operands.empty()) return usage("doctor does not take `" + text::escape(into.operands[0]) + "'");
        return {};
    case Command::bench:
        if (!into.operands.empty()) return usage("bench does not take `" + text::escape(into.operands[0]) + "'");
        return {};
    case Command::plugin: return check_plugin(into);
    case Command::none: break;
    }
    return {};
}

} // namespace ktrace::cli
