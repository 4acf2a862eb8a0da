#include "option_table.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"
#include "compare/diff.h"
#include "expect/case.h"
#include "expect/claim.h"
#include "output/table.h"
#include "own_options.h"
#include "probe/watch_spec.h"
#include "program/run/record.h"
#include "usage.h"
#include "values.h"

namespace ktrace::cli {

namespace {

using probe::Actions;
using trace::Config;

constexpr unsigned bit(Command command) { return static_cast<unsigned>(command); }
constexpr unsigned tracing = bit(Command::attach) | bit(Command::run);
constexpr unsigned attach_only = bit(Command::attach);
constexpr unsigned diff_too = bit(Command::diff);
constexpr unsigned list_only = bit(Command::list);
constexpr unsigned ctl_only = bit(Command::ctl);
constexpr unsigned repair_only = bit(Command::repair);
constexpr unsigned plugin_only = bit(Command::plugin);
constexpr unsigned profile_only = bit(Command::profile);
constexpr unsigned looking = bit(Command::stack) | profile_only;
constexpr unsigned probing = tracing | ctl_only; // ctl add
constexpr unsigned everywhere =
    probing | diff_too | looking | list_only | repair_only | plugin_only | bit(Command::bench) | bit(Command::doctor);

// How options change an Invocation.

Result<probe::Spec> read_spec(probe::Kind kind, const std::string &text) {
    if (kind != probe::Kind::watch) return probe::parse_spec(text);
    if (auto parsed = probe::parse_watch(text); !parsed) return fail(parsed.error());
    probe::Spec spec;
    spec.text = text;
    return spec;
}

template <probe::Kind kind> Status add_probe(Invocation &into, const std::string &value) {
    auto quoted = split_quoted(value);
    if (!quoted) return fail(quoted.error());
    auto spec = read_spec(kind, quoted->spec);
    if (!spec) return fail(spec.error());
    const std::size_t before = into.config.probes.size();
    into.config.probes.push_back({static_cast<std::uint32_t>(before + 1), kind, std::move(*spec)});
    quoted->probe = before;
    if (!quoted->options.empty()) into.quoted.push_back(std::move(*quoted));
    return {};
}

/// FILE.so, and behind the first space outside of quotes its parameters, which are the plugin's to read.
Status add_plugin(Invocation &into, const std::string &value) {
    trace::PluginRequest request;
    std::string_view rest = text::trim(value);
    bool quoted = false;
    for (; !rest.empty() && (quoted || (rest[0] != ' ' && rest[0] != '\t')); rest.remove_prefix(1)) {
        if (rest[0] == '"')
            quoted = !quoted;
        else
            request.path += rest[0];
    }
    if (request.path.empty()) return usage("--plugin needs a file: --plugin 'FILE.so name=value...'");
    request.parameters = text::trim(rest);
    into.config.plugins.push_back(std::move(request));
    return {};
}

Status add_processes(Invocation &into, const std::string &value) {
    auto words = read_processes(value);
    if (!words) return fail(words.error());
    into.processes.insert(into.processes.end(), words->begin(), words->end());
    return {};
}

template <std::vector<std::string> Actions::*list> Status add_expressions(Invocation &into, const std::string &value) {
    auto expressions = split_expressions(value);
    if (!expressions) return fail(expressions.error());
    auto &known = into.config.actions.*list;
    known.insert(known.end(), expressions->begin(), expressions->end());
    return {};
}

Status set_condition(Invocation &into, const std::string &value) {
    std::string &condition = into.config.actions.condition;
    if (!condition.empty()) return usage("--if is given twice", "join the two conditions with &&");
    if (text::trim(value).empty()) return usage("--if needs an expression, not an empty text");
    condition = value;
    return {};
}

using Injected = Actions::Injection::Kind;

/// Two values for one thing would leave it open which of them holds.
Status inject(Invocation &into, const std::string &option, Injected kind, const std::string &name,
              const std::string &value) {
    auto &injections = into.config.actions.injections;
    bool again = std::any_of(injections.begin(), injections.end(),
                             [&](const auto &each) { return each.kind == kind && each.name == name; });
    if (again)
        return usage(option + " is given twice" +
                     (name == "retval" || name == "errno" ? "" : " for " + text::escape(name)));
    injections.push_back({kind, name, value});
    return {};
}

/// NAME=EXPR.
template <Injected kind> Status add_injection(Invocation &into, const std::string &value) {
    constexpr const char *option = kind == Injected::argument ? "--set-arg" : "--set-reg";
    std::size_t equals = value.find('=');
    std::string name(text::trim(value.substr(0, equals)));
    bool complete = equals != std::string::npos && !name.empty() && !text::trim(value.substr(equals + 1)).empty();
    if (!complete)
        return usage(std::string(option) + " needs a name and a value, not `" + text::escape(value) + "'",
                     kind == Injected::argument ? "for example --set-arg 0=5 or --set-arg size=0"
                                                : "for example --set-reg ax=5");
    return inject(into, option, kind, name, value.substr(equals + 1));
}

Status set_result(Invocation &into, const std::string &value) {
    if (text::trim(value).empty()) return usage("--set-ret needs a value");
    return inject(into, "--set-ret", Injected::result, "retval", value);
}

Status set_skip(Invocation &into, const std::string &value) {
    return inject(into, "--skip", Injected::skip, "retval", value == no_value ? "0" : value);
}

Status set_errno(Invocation &into, const std::string &value) {
    if (text::trim(value).empty()) return usage("--set-errno needs a value", "for example --set-errno ENOSPC");
    return inject(into, "--set-errno", Injected::error, "errno", value);
}

Status set_inside(Invocation &into, const std::string &value) {
    if (into.config.actions.inside) return usage("--inside is given twice", "a glob can name several functions");
    auto spec = probe::parse_spec(value);
    if (!spec) return fail(spec.error());
    into.config.actions.inside = std::move(*spec);
    return {};
}

Status set_post(Invocation &into, const std::string &value) {
    into.config.actions.post = true;
    return value == no_value ? Status{} : add_expressions<&Actions::post_print>(into, value);
}

Status choose_aggregate(Actions &actions, Actions::Aggregate kind) {
    if (actions.aggregate != Actions::Aggregate::none)
        return usage("--count, --stats and --hist exclude each other, and each is given once",
                     "--stats and --hist show the count, too");
    actions.aggregate = kind;
    return {};
}

Status set_count(Invocation &into, const std::string &) {
    return choose_aggregate(into.config.actions, Actions::Aggregate::count);
}

template <Actions::Aggregate kind> Status set_measure(Invocation &into, const std::string &value) {
    if (value != no_value) into.config.actions.aggregate_of = value;
    return choose_aggregate(into.config.actions, kind);
}

Status set_every(Invocation &into, const std::string &value) {
    auto read = read_positive("--every", value, std::numeric_limits<std::uint64_t>::max());
    if (!read) return fail(read.error());
    into.config.actions.every = *read;
    return {};
}

Status set_chance(Invocation &into, const std::string &value) {
    auto chance = read_chance(value);
    if (!chance) return fail(chance.error());
    into.config.actions.chance = *chance;
    return {};
}

Status set_seed(Invocation &into, const std::string &value) {
    auto seed = text::parse_u64(value);
    if (!seed) return usage("--seed needs a whole number, not `" + text::escape(value) + "'");
    into.config.actions.seed = *seed;
    return {};
}

Status set_first(Invocation &into, const std::string &value) {
    auto first = read_positive("--first", value, std::numeric_limits<std::uint64_t>::max());
    if (!first) return fail(first.error());
    into.config.actions.first = *first;
    return {};
}

Status set_maxactive(Invocation &into, const std::string &value) {
    auto maxactive = read_positive("--maxactive", value, 1U << 20);
    if (!maxactive) return fail(maxactive.error());
    into.config.actions.maxactive = static_cast<std::uint32_t>(*maxactive);
    return {};
}

Status set_duration(Invocation &into, const std::string &value) {
    auto duration = read_duration("--duration", value);
    if (!duration) return fail(duration.error());
    into.config.duration_ns = *duration;
    return {};
}

Status set_max_events(Invocation &into, const std::string &value) {
    auto most = read_positive("--max-events", value, std::numeric_limits<std::uint64_t>::max());
    if (!most) return fail(most.error());
    into.config.max_events = *most;
    return {};
}

Status set_max_overhead(Invocation &into, const std::string &value) {
    auto most = read_percentage("--max-overhead", value);
    if (!most) return fail(most.error());
    into.config.max_overhead = *most;
    return {};
}

Status set_interval(Invocation &into, const std::string &value) {
    auto interval = read_duration("--interval", value);
    if (!interval) return fail(interval.error());
    into.config.interval_ns = *interval;
    return {};
}

Status set_sort(Invocation &into, const std::string &value) {
    if (!output::is_sort_column(value))
        return usage("--sort needs a column of the table, not `" + text::escape(value) + "'",
                     "there are total, self, count, avg, min, p50, p90, p99, max and function");
    into.config.sort = value;
    return {};
}

Status set_top(Invocation &into, const std::string &value) {
    auto most = read_positive("--top", value, std::numeric_limits<std::uint32_t>::max());
    if (!most) return fail(most.error());
    into.config.top = *most;
    return {};
}

Status set_engine(Invocation &into, const std::string &value) {
    using Engine = Config::Engine;
    if (value != "auto" && value != "trap" && value != "jump")
        return usage("--engine is auto, trap or jump, not `" + text::escape(value) + "'");
    into.config.engine = value == "auto" ? Engine::automatic : value == "trap" ? Engine::trap : Engine::jump;
    return {};
}

Status set_frequency(Invocation &into, const std::string &value) {
    constexpr std::uint64_t most = 10'000; // a second
    auto frequency = read_positive("--frequency", value, most);
    if (!frequency) return fail(frequency.error());
    into.profile.frequency = static_cast<unsigned>(*frequency);
    return {};
}

Status set_waiting(Invocation &into, const std::string &) {
    into.profile.waiting = true;
    return {};
}

Status set_output(Invocation &into, const std::string &value) {
    if (value.empty()) return usage("-o needs the name of a file");
    into.config.output = value == "-" ? "" : value; // as with other tools, standard output
    return {};
}

Status set_format(Invocation &into, const std::string &value) {
    static constexpr std::pair<std::string_view, Config::Format> formats[] = {{"text", Config::Format::text},
                                                                              {"json", Config::Format::json},
                                                                              {"csv", Config::Format::csv},
                                                                              {"folded", Config::Format::folded},
                                                                              {"chrome", Config::Format::chrome}};
    for (const auto &[name, format] : formats)
        if (name == value) {
            into.config.format = format;
            return {};
        }
    return usage("--format is text, json, csv, folded or chrome, not `" + text::escape(value) + "'");
}

Status add_expectation(Invocation &into, const std::string &value) {
    const bool is_of_two = into.command == Command::diff;
    auto claim = expect::parse_claim(value, is_of_two ? expect::Runs::two : expect::Runs::one);
    if (!claim) return fail(claim.error());
    if (auto checked = is_of_two ? compare::check_claim(*claim) : Status{}; !checked) return checked;
    into.config.expectations.push_back({value});
    return {};
}

Status set_report(Invocation &into, const std::string &value) {
    if (!expect::is_report_name(value))
        return usage("--report needs a FILE.xml (JUnit) or a FILE.tap (TAP), not `" + text::escape(value) + "'");
    into.config.report = value;
    return {};
}

template <bool Config::*flag> Status set_flag(Invocation &into, const std::string &) {
    into.config.*flag = true;
    return {};
}

template <bool ListRequest::*flag> Status set_list_flag(Invocation &into, const std::string &) {
    into.list.*flag = true;
    return {};
}

template <bool Actions::*flag> Status set_action(Invocation &into, const std::string &) {
    into.config.actions.*flag = true;
    return {};
}

Status set_regs(Invocation &into, const std::string &) {
    into.config.actions.regs = true;
    return {};
}

Status set_stack(Invocation &into, const std::string &value) {
    into.config.actions.stack = 0;
    if (value == no_value) return {};
    auto frames = read_positive("--stack", value, program::max_frames);
    if (!frames) return fail(frames.error());
    into.config.actions.stack = static_cast<int>(*frames);
    return {};
}

Status more_verbose(Invocation &into, const std::string &) {
    into.config.verbose++;
    return {};
}

Status ask_help(Invocation &into, const std::string &) {
    into.help = true;
    return {};
}

Status ask_version(Invocation &into, const std::string &) {
    into.version = true;
    return {};
}

// clang-format off
constexpr std::array table{
    Option{'p', "pid", Takes::value, "PID|NAME[,...]", Group::target, attach_only | looking | list_only | ctl_only | repair_only,
           "by number or name (ctl, list, repair: one)", add_processes},
    Option{'f', "follow", Takes::nothing, "", Group::target, tracing,
           "trace its children and what they execute, too", set_flag<&Config::follow>},
    Option{0, "allow-missing", Takes::nothing, "", Group::target, probing,
           "go on without the probes that cannot be placed", set_flag<&Config::allow_missing>},
    Option{0, "duration", Takes::value, "TIME", Group::target, tracing | profile_only,
           "end the trace after 10s, 250ms, 0.5s, 2m", set_duration},
    Option{0, "max-events", Takes::value, "N", Group::target, tracing,
           "end the trace after N events", set_max_events},
    Option{0, "max-overhead", Takes::value, "PERCENT", Group::target, tracing,
           "disarm what costs a thread more of its time", set_max_overhead},
    Option{0, "engine", Takes::value, "ENGINE", Group::target, tracing,
           "auto (by jumps where it can), trap or jump", set_engine},
    Option{0, "lossless", Takes::nothing, "", Group::target, tracing,
           "threads wait for room for events, however long", set_flag<&Config::lossless>},

    Option{'F', "frequency", Takes::value, "N", Group::target, profile_only,
           "look at each thread N times a second (99)", set_frequency},

    Option{'k', "probe", Takes::value, "SPEC", Group::probes, probing,
           "probe an instruction", add_probe<probe::Kind::probe>},
    Option{'j', "entry", Takes::value, "SPEC", Group::probes, probing,
           "probe a function's entry: its arguments", add_probe<probe::Kind::entry>},
    Option{'r', "ret", Takes::value, "SPEC", Group::probes, probing,
           "probe a function's return: its value and duration", add_probe<probe::Kind::ret>},
    Option{'w', "watch", Takes::value, "WSPEC", Group::probes, probing,
           "watch data: NAME|ADDRESS[/LENGTH][:w|rw|x]", add_probe<probe::Kind::watch>},
    Option{0, "plugin", Takes::value, "FILE.so", Group::probes, tracing,
           "run a plugin: 'FILE.so [name=value...]'", add_plugin},

    Option{0, "if", Takes::value, "EXPR", Group::handlers, probing,
           "only where EXPR holds", set_condition},
    Option{0, "inside", Takes::value, "SPEC", Group::handlers, probing,
           "only under calls of this function by the thread", set_inside},
    Option{0, "print", Takes::value, "EXPR[,EXPR...]", Group::handlers, probing,
           "print these values in place of the arguments", add_expressions<&Actions::print>},
    Option{0, "no-args", Takes::nothing, "", Group::handlers, probing,
           "events without the arguments", set_action<&Actions::no_args>},
    Option{0, "full", Takes::nothing, "", Group::handlers, probing,
           "values are not shortened", set_action<&Actions::full>},
    Option{0, "post", Takes::optional_value, "EXPR,...", Group::handlers, probing,
           "an event after the instruction, too, with values", set_post},
    Option{0, "regs", Takes::nothing, "", Group::handlers, probing,
           "print the registers", set_regs},
    Option{0, "stack", Takes::optional_value, "N", Group::handlers, probing,
           "print the stack: N frames, or all (127)", set_stack},
    Option{0, "set-arg", Takes::value, "N=EXPR", Group::handlers, probing,
           "change an argument (number from 0, or name)", add_injection<Injected::argument>},
    Option{0, "set-reg", Takes::value, "REG=EXPR", Group::handlers, probing,
           "change a register", add_injection<Injected::reg>},
    Option{0, "set-ret", Takes::value, "EXPR", Group::handlers, probing,
           "return probes: change what the function returns", set_result},
    Option{0, "skip", Takes::optional_value, "EXPR", Group::handlers, probing,
           "return this (or 0) without running the function", set_skip},
    Option{0, "set-errno", Takes::value, "EXPR", Group::handlers, probing,
           "with --skip, --set-ret: what errno is then", set_errno},
    Option{0, "expect", Takes::value, "CLAIM", Group::handlers, tracing | diff_too,
           "what must hold, else status 3: ktrace-expect(7)", add_expectation},
    Option{0, "maxactive", Takes::value, "N", Group::handlers, probing,
           "return probes: calls in flight a place (4096)", set_maxactive},

    Option{0, "count", Takes::nothing, "", Group::aggregates, probing,
           "count, instead of a line an event", set_count},
    Option{0, "stats", Takes::optional_value, "EXPR", Group::aggregates, probing,
           "count, total, self, average, extremes, percentiles", set_measure<Actions::Aggregate::stats>},
    Option{0, "hist", Takes::optional_value, "EXPR", Group::aggregates, probing,
           "a histogram by powers of two", set_measure<Actions::Aggregate::hist>},
    Option{0, "by", Takes::value, "EXPR[,EXPR...]", Group::aggregates, probing,
           "a row per value; alone it means --count", add_expressions<&Actions::by>},
    Option{0, "sort", Takes::value, "COLUMN", Group::aggregates, tracing,
           "largest first (by default: by total, else count)", set_sort},
    Option{0, "top", Takes::value, "N", Group::aggregates, tracing | profile_only,
           "the first N rows, and the rest as one", set_top},
    Option{0, "interval", Takes::value, "TIME", Group::aggregates, tracing,
           "tables while it runs, too: of each 1s, say", set_interval},

    Option{0, "every", Takes::value, "N", Group::selection, probing,
           "only hits N, 2N, 3N, ...", set_every},
    Option{0, "chance", Takes::value, "P", Group::selection, probing,
           "then each with the probability P (0 to 1)", set_chance},
    Option{0, "seed", Takes::value, "S", Group::selection, probing,
           "make --chance choose the same hits again", set_seed},
    Option{0, "first", Takes::value, "N", Group::selection, probing,
           "then the first N of those", set_first},

    Option{'o', "output", Takes::value, "FILE", Group::output, tracing | looking | plugin_only,
           "write events and tables, or a plugin, to FILE", set_output},
    Option{0, "format", Takes::value, "FORMAT", Group::output, probing | looking | diff_too,
           "text, json, csv, folded or chrome", set_format},
    Option{0, "report", Takes::value, "FILE", Group::output, tracing | diff_too,
           "expectations as JUnit (.xml) or TAP (.tap)", set_report},
    Option{0, "waiting", Takes::nothing, "", Group::output, profile_only,
           "folded stacks, or the graph, of what is waited for", set_waiting},
    Option{0, "ns", Takes::nothing, "", Group::output, tracing,
           "times in whole nanoseconds", set_flag<&Config::exact_times>},
    Option{0, "lines", Takes::nothing, "", Group::output, list_only,
           "list the source lines that can be probed, too", set_list_flag<&ListRequest::lines>},
    Option{0, "inlines", Takes::nothing, "", Group::output, list_only,
           "list the inlined instances, too", set_list_flag<&ListRequest::inlines>},
    Option{'q', "quiet", Takes::nothing, "", Group::output, tracing | looking,
           "no notices and no summary, only errors", set_flag<&Config::quiet>},
    Option{'v', "verbose", Takes::nothing, "", Group::output, tracing | ctl_only,
           "show where each probe is; ctl list: why a trap", more_verbose},
    Option{'h', "help", Takes::nothing, "", Group::output, everywhere, "show this help", ask_help},
    Option{'V', "version", Takes::nothing, "", Group::output, everywhere, "show the version", ask_version},
};
// clang-format on

} // namespace

std::span<const Option> options() { return table; }

bool belongs_to(const Option &option, Command command) {
    return command == Command::none || (option.commands & bit(command)) != 0;
}

} // namespace ktrace::cli
