#include "words.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "usage.h"

namespace ktrace::cli {

namespace {

tl::unexpected<Error> missing_value(const std::string &name, const Option &option, std::string hint = {}) {
    return usage(name + " needs a value: " + name + " " + option.value_name, std::move(hint));
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

/// No SPEC, PID, FILE or TIME begins with a `-`, but for the file `-`. An EXPR may; of a number it is an error of its
/// own.
bool may_be_value(const Option &option, const std::string &word) {
    if (word.size() < 2 || word[0] != '-') return true;
    if (std::string_view(option.value_name).find("EXPR") != std::string_view::npos) return true;
    return std::isdigit(static_cast<unsigned char>(word[1])) != 0;
}

} // namespace

const Option *option_called(const std::string &name) {
    for (const Option &option : options())
        if (name == std::string("--") + option.name || (option.letter && name == std::string("-") + option.letter))
            return &option;
    return nullptr;
}

SplitWords split_words(const std::vector<std::string> &words, Command command) {
    bool is_value = false; // of the word before
    for (auto word = words.begin(); word != words.end(); ++word) {
        if (*word == "--") return {{words.begin(), word}, {word + 1, words.end()}};
        const bool is_option = !is_value && word->starts_with('-');
        if (command == Command::run && !is_option && !is_value) return {{words.begin(), word}, {word, words.end()}};
        is_value = is_option && find_expecting(*word, command).second;
    }
    return {words, {}};
}

Status check_values(const std::vector<std::string> &own, Command command) {
    std::pair<std::string, const Option *> expecting; // of the word before
    for (const std::string &word : own) {
        if (expecting.second) {
            if (!may_be_value(*expecting.second, word))
                return missing_value(expecting.first, *expecting.second, "`" + text::escape(word) + "' is an option");
            expecting = {};
            continue;
        }
        if (word.starts_with("--") && word.ends_with('='))
            if (auto refused = refuse_empty_value(word.substr(0, word.size() - 1), command); !refused) return refused;
        expecting = find_expecting(word, command);
    }
    if (expecting.second) return missing_value(expecting.first, *expecting.second);
    return {};
}

std::string hint_for_value_apart(const std::vector<std::string> &words, Command command, const std::string &word) {
    auto takes_it = [&](const std::string &before) {
        const Option *option = option_called(before);
        return option && option->takes == Takes::optional_value && belongs_to(*option, command);
    };
    for (std::size_t at = 1; at < words.size(); at++)
        if (words[at] == word && takes_it(words[at - 1]))
            return "the value of " + words[at - 1] + " goes behind a `=': " + words[at - 1] + "=" + text::escape(word);
    return {};
}

} // namespace ktrace::cli
