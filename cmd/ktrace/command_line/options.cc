#include "options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "check.h"
#include "habits.h"
#include "option_table.h"
#include "own_options.h"
#include "usage.h"
#include "words.h"

namespace ktrace::cli {

namespace {

constexpr std::array<std::pair<std::string_view, Command>, 11> commands{{{"attach", Command::attach},
                                                                         {"run", Command::run},
                                                                         {"stack", Command::stack},
                                                                         {"profile", Command::profile},
                                                                         {"diff", Command::diff},
                                                                         {"list", Command::list},
                                                                         {"ctl", Command::ctl},
                                                                         {"bench", Command::bench},
                                                                         {"repair", Command::repair},
                                                                         {"plugin", Command::plugin},
                                                                         {"doctor", Command::doctor}}};

std::string names_for_cli11(const Option &option) {
    std::string names = option.letter ? std::string("-") + option.letter + "," : std::string();
    names += std::string("--") + option.name;
    if (option.takes == Takes::optional_value) names += std::string("{") + no_value + "}";
    return names;
}

std::string dashed(const Option &option) { return std::string("--") + option.name; }

using Given = std::map<const CLI::Option *, const Option *>;

Given declare(CLI::App &app, Command command) {
    Given given;
    for (const Option &option : options()) {
        if (!belongs_to(option, command)) continue;
        CLI::Option *declared = option.takes == Takes::value
                                    ? app.add_option(names_for_cli11(option))->expected(1)->type_name(option.value_name)
                                    : app.add_flag(names_for_cli11(option));
        declared->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
        given[declared] = &option;
    }
    app.allow_extras();
    return given;
}

/// Applies the options in the order in which they stood.
Status apply(const CLI::App &app, const Given &given, Invocation &into) {
    std::map<const CLI::Option *, std::size_t> seen;
    for (const CLI::Option *each : app.parse_order()) {
        const Option &option = *given.at(each);
        const std::string &value = each->results().at(seen[each]++);
        if (option.takes == Takes::nothing && value != "true") return usage(dashed(option) + " takes no value");
        if (auto applied = option.apply(into, value); !applied) return applied;
        into.given.push_back({option.name, value});
    }
    return {};
}

tl::unexpected<Error> misplaced_option(const std::string &name, const Option &option, Command command) {
    std::string what = name_of(command) + " does not take " + name;
    if (command == Command::ctl && belongs_to(option, Command::attach))
        return usage(what, "that is for the whole trace when it is started; added probes end with it");
    std::string takers;
    for (auto [other, taking] : commands)
        if (belongs_to(option, taking)) takers += (takers.empty() ? "" : ", ") + std::string(other);
    return usage(what, "it is an option of " + takers);
}

tl::unexpected<Error> unknown_option(const std::string &argument, const Invocation &into) {
    const Command command = into.command;
    std::string name = argument.substr(0, argument.find('=', 2));
    if (std::isdigit(static_cast<unsigned char>(argument[1])))
        if (std::string hint = hint_for_value_apart(into.words, command, argument); !hint.empty())
            return usage("there is no option " + text::escape(argument), hint);
    if (const Option *option = option_called(name)) return misplaced_option(name, *option, command);
    const bool traces = command == Command::attach || command == Command::run;
    const std::string habit = traces && name[1] != '-' ? hint_for_habit(name[1]) : std::string();
    if (name.size() == 2 && !habit.empty()) return usage("there is no option " + text::escape(name), habit);
    std::vector<std::string> known;
    for (const Option &option : options())
        if (belongs_to(option, command)) known.push_back(dashed(option));
    auto near = text::nearest(name, {known.begin(), known.end()}, 1);
    if (!near.empty()) return usage("there is no option " + text::escape(name), "did you mean " + near[0] + "?");
    if (name.size() > 2 && name[1] != '-') { // a cluster: the letters before this one were read
        name.resize(2);
        if (const Option *option = option_called(name)) return misplaced_option(name, *option, command);
    }
    return usage("there is no option " + text::escape(name),
                 habit.empty() ? "ktrace " + name_of(command) + " --help shows the options" : habit);
}

Status read_options(Invocation &into) {
    const std::vector<std::string> &arguments = into.words;
    CLI::App app;
    app.set_help_flag();
    Given given = declare(app, into.command);
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError &error) {
        return usage(text::escape(error.what()), "ktrace " + name_of(into.command) + " --help shows the options");
    }
    into.operands = app.remaining();
    for (const std::string &operand : into.operands) {
        bool is_option = operand.size() > 1 && operand[0] == '-';
        if (is_option) return unknown_option(operand, into);
    }
    if (auto applied = apply(app, given, into); !applied) return applied;
    return apply_own_options(into);
}

Result<Command> find_command(const std::string &name) {
    std::vector<std::string_view> names;
    for (auto [known, command] : commands) {
        if (name == known) return command;
        names.push_back(known);
    }
    if (name.starts_with("-"))
        return usage("name a command before the options: attach, run, stack, profile, diff, list, ctl, plugin, repair, "
                     "bench or doctor",
                     "for example ktrace attach -p PID --ret FUNCTION");
    auto near = text::nearest(name, names, 1);
    return usage("there is no command `" + text::escape(name) + "'",
                 near.empty()
                     ? "there are attach, run, stack, profile, diff, list, ctl, plugin, repair, bench and doctor"
                     : "did you mean " + near[0] + "?");
}

} // namespace

std::string name_of(Command command) {
    for (auto [name, known] : commands)
        if (known == command) return std::string(name);
    return {};
}

Result<Invocation> parse(const std::vector<std::string> &arguments) {
    Invocation into;
    if (arguments.empty())
        return usage("name a command: attach, run, stack, profile, diff, list, ctl, plugin, repair, bench or doctor",
                     "ktrace --help shows how");
    const std::string &first = arguments[0];
    if (first == "--help" || first == "-h" || first == "help") into.help = true;
    if (first == "--version" || first == "-V") into.version = true;
    if (into.help || into.version) {
        if (first == "help" && arguments.size() > 1) {
            auto command = find_command(arguments[1]);
            if (!command) return fail(command.error());
            into.command = *command;
        }
        return into;
    }
    auto command = find_command(first);
    if (!command) return fail(command.error());
    into.command = *command;

    // CLI11 reads options behind `--`, too: the program's arguments are cut off before it sees them.
    SplitWords split = split_words({arguments.begin() + 1, arguments.end()}, into.command);
    into.words = std::move(split.own);
    if (auto complete = check_values(into.words, into.command); !complete) return fail(complete.error());
    if (into.command == Command::run) into.config.program = split.behind;

    if (auto read = read_options(into); !read) return fail(read.error());
    if (into.help || into.version) return into;
    if (into.command != Command::run)
        into.operands.insert(into.operands.end(), split.behind.begin(), split.behind.end());
    if (auto checked = check(into); !checked) return fail(checked.error());
    return into;
}

} // namespace ktrace::cli
