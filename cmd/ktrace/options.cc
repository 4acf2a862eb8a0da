#include "options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "check.h"
#include "option_table.h"
#include "usage.h"

namespace ktrace::cli {

namespace {

constexpr std::array<std::pair<std::string_view, Command>, 8> commands{{{"attach", Command::attach},
                                                                        {"run", Command::run},
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
    app.prefix_command(command == Command::run); // a stray word begins the program, whose -- is missing
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
        into.given.push_back(option.name);
    }
    return {};
}

/// An option of any command, by either of its names; nullptr: there is none.
const Option *option_called(const std::string &name) {
    for (const Option &option : options())
        if (name == dashed(option) || (option.letter && name == std::string("-") + option.letter)) return &option;
    return nullptr;
}

std::string name_of(Command wanted) {
    for (auto [name, command] : commands)
        if (command == wanted) return std::string(name);
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
        if (std::string hint = hint_for_value_apart(into, argument); !hint.empty())
            return usage("there is no option " + text::escape(argument), hint);
    if (const Option *option = option_called(name)) return misplaced_option(name, *option, command);
    std::vector<std::string> known;
    for (const Option &option : options())
        if (belongs_to(option, command)) known.push_back(dashed(option));
    auto near = text::nearest(name, {known.begin(), known.end()}, 1);
    if (!near.empty()) return usage("there is no option " + text::escape(name), "did you mean " + near[0] + "?");
    if (name.size() > 2 && name[1] != '-') { // a cluster: the letters before this one were read
        name.resize(2);
        if (const Option *option = option_called(name)) return misplaced_option(name, *option, command);
    }
    return usage("there is no option " + text::escape(name), "ktrace --help shows the options");
}

tl::unexpected<Error> missing_value(const std::string &name, const Option &option) {
    return usage(name + " needs a value: " + name + " " + option.value_name);
}

/// The option that takes the next word for its value, as it is called here (`--print`, `-k`, the `-k` of `-qk`), and
/// itself; nullptr: none does.
std::pair<std::string, const Option *> find_expecting(const std::string &word, Command command) {
    auto of_command = [&](const std::string &name) {
        const Option *option = option_called(name);
        return option && belongs_to(*option, command) ? option : nullptr;
    };
    if (word.starts_with("--")) {
        const Option *option = of_command(word);
        return {word, option && option->takes == Takes::value ? option : nullptr};
    }
    for (std::size_t at = 1; at < word.size() && word[0] == '-'; at++) {
        const std::string name = std::string("-") + word[at];
        const Option *option = of_command(name);
        if (!option) break;
        if (option->takes == Takes::value) return {name, at + 1 == word.size() ? option : nullptr};
    }
    return {word, nullptr};
}

/// `--print=`: CLI11 would take the next word for the value.
Status refuse_empty_value(const std::string &name, Command command) {
    const Option *option = option_called(name);
    if (!option || !belongs_to(*option, command)) return {}; // CLI11 does not know it either
    if (option->takes == Takes::nothing) return usage(name + " takes no value");
    if (option->takes == Takes::value) return missing_value(name, *option);
    return usage(name + "= needs a value: " + name + "=" + option->value_name, "or " + name + " alone");
}

Status refuse_empty_values(const Invocation &into) {
    bool is_value = false; // of the word before
    for (const std::string &word : into.words) {
        const bool is_option = !is_value && word.starts_with('-');
        if (into.command == Command::run && !is_option && !is_value) break; // the program, whose -- is missing
        if (is_option && word.starts_with("--") && word.ends_with('='))
            if (auto refused = refuse_empty_value(word.substr(0, word.size() - 1), into.command); !refused)
                return refused;
        is_value = is_option && find_expecting(word, into.command).second;
    }
    return {};
}

Status read_options(Invocation &into) {
    const std::vector<std::string> &arguments = into.words;
    CLI::App app;
    app.set_help_flag();
    Given given = declare(app, into.command);
    if (auto refused = refuse_empty_values(into); !refused) return refused;
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError &error) {
        if (auto [name, option] = find_expecting(arguments.back(), into.command); option)
            return missing_value(name, *option);
        return usage(text::escape(error.what()), "ktrace --help shows the options");
    }
    into.operands = app.remaining();
    for (const std::string &operand : into.operands) {
        bool is_option = operand.size() > 1 && operand[0] == '-';
        if (is_option) return unknown_option(operand, into);
        if (into.command == Command::run) break; // the rest was meant for the program, whose -- is missing
    }
    return apply(app, given, into);
}

Result<Command> find_command(const std::string &name) {
    std::vector<std::string_view> names;
    for (auto [known, command] : commands) {
        if (name == known) return command;
        names.push_back(known);
    }
    if (name.starts_with("-"))
        return usage("name a command before the options: attach, run, list, ctl, plugin, repair, bench or doctor",
                     "for example ktrace attach -p PID --ret FUNCTION");
    auto near = text::nearest(name, names, 1);
    return usage("there is no command `" + text::escape(name) + "'",
                 near.empty() ? "there are attach, run, list, ctl, plugin, repair, bench and doctor"
                              : "did you mean " + near[0] + "?");
}

} // namespace

Result<Invocation> parse(const std::vector<std::string> &arguments) {
    Invocation into;
    if (arguments.empty())
        return usage("name a command: attach, run, list, ctl, plugin, repair, bench or doctor",
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
    auto separator = std::find(arguments.begin() + 1, arguments.end(), "--");
    bool separated = separator != arguments.end();
    into.words.assign(arguments.begin() + 1, separator);
    std::vector<std::string> behind(separated ? separator + 1 : separator, arguments.end());
    if (into.command == Command::run) into.config.program = std::move(behind);

    if (auto read = read_options(into); !read) return fail(read.error());
    if (into.help || into.version) return into;
    if (into.command != Command::run) into.operands.insert(into.operands.end(), behind.begin(), behind.end());
    if (auto checked = check(into, separated); !checked) return fail(checked.error());
    return into;
}

} // namespace ktrace::cli
