#include "values.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.h"
#include "usage.h"

namespace ktrace::cli {

namespace {

std::string in_quotes(std::string_view text) { return "`" + text::escape(text) + "'"; }

/// The index behind the string literal that starts at text[at].
std::size_t behind_string(std::string_view text, std::size_t at) {
    char quote = text[at++];
    while (at < text.size() && text[at] != quote) at += text[at] == '\\' ? 2 : 1;
    return at + 1;
}

/// The index of the first comma from `at` on that stands outside of brackets and strings, or the end.
std::size_t top_level_comma(std::string_view text, std::size_t at) {
    int depth = 0;
    while (at < text.size()) {
        char c = text[at];
        if (c == ',' && depth == 0) return at;
        if (c == '"' || c == '\'') {
            at = behind_string(text, at);
            continue;
        }
        if (c == '(' || c == '[' || c == '{') depth++;
        if ((c == ')' || c == ']' || c == '}') && depth > 0) depth--;
        at++;
    }
    return text.size();
}

/// Of a process: a number must be one that processes can have. A name is not looked at.
Status check_number(const std::string &word) {
    constexpr std::uint64_t most = std::numeric_limits<pid_t>::max();
    if (word[0] == '-') return usage("-p needs a process, by its number or its name, not " + in_quotes(word));
    if (!is_number(word)) return {};
    const std::uint64_t number = text::parse_u64(word).value_or(most + 1);
    if (number == 0) return usage("-p 0: processes are numbered from 1");
    if (number > most) return usage("-p " + word + ": no process has so large a number");
    return {};
}

} // namespace

Result<std::uint64_t> read_positive(std::string_view option, std::string_view text, std::uint64_t most) {
    auto number = text::parse_u64(text);
    if (!number) return usage(std::string(option) + " needs a whole number, not " + in_quotes(text));
    if (*number == 0) return usage(std::string(option) + " must be at least 1");
    if (*number > most)
        return usage(std::string(option) + " can be " + std::to_string(most) + " at most, not " + in_quotes(text));
    return *number;
}

Result<double> read_chance(std::string_view text) {
    double chance = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), chance);
    if (error != std::errc{} || end != text.data() + text.size() || !(chance > 0 && chance <= 1))
        return usage("--chance needs a probability above 0 and up to 1, not " + in_quotes(text),
                     "for example --chance 0.01");
    return chance;
}

Result<double> read_percentage(std::string_view option, std::string_view text) {
    std::string_view number = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
    double percent = 0;
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
    if (error != std::errc{} || end != number.data() + number.size() || !(percent > 0 && percent <= 100))
        return usage(std::string(option) + " needs a percentage above 0 and up to 100, not " + in_quotes(text),
                     "for example " + std::string(option) + " 20%");
    return percent / 100;
}

Result<std::uint64_t> read_duration(std::string_view option, std::string_view text) {
    auto duration = text::parse_duration(text);
    if (!duration)
        return usage(std::string(option) + " needs a time with its unit, not " + in_quotes(text),
                     "for example 10s, 250ms, 2m");
    if (*duration == 0) return usage(std::string(option) + " must be longer than nothing");
    return *duration;
}

Result<std::vector<std::string>> read_processes(std::string_view text) {
    constexpr std::string_view blanks = " \t\n";
    std::vector<std::string> words;
    for (std::string_view part : text::split(text, ',')) {
        std::size_t at = part.find_first_not_of(blanks);
        if (at == part.npos && part.size() < text.size())
            return usage("-p has a comma with no process behind or before it");
        if (at == part.npos)
            return usage("-p needs a process, by its number or its name",
                         "where it is $(pidof NAME), none has that name");
        while (at != part.npos) {
            const std::size_t end = std::min(part.find_first_of(blanks, at), part.size());
            words.emplace_back(part.substr(at, end - at));
            if (auto fits = check_number(words.back()); !fits) return fail(fits.error());
            at = part.find_first_not_of(blanks, end);
        }
    }
    return words;
}

bool is_number(std::string_view word) { return !word.empty() && word.find_first_not_of("0123456789,") == word.npos; }

Result<std::vector<std::string>> split_expressions(std::string_view text) {
    std::vector<std::string> parts;
    for (std::size_t at = 0;;) {
        std::size_t comma = top_level_comma(text, at);
        std::string_view part = text::trim(text.substr(at, comma - at));
        if (part.empty()) {
            Error error{
                Error::Kind::usage, "an expression is missing here", {}, std::string(text), static_cast<int>(at), 1};
            return fail(std::move(error));
        }
        parts.emplace_back(part);
        if (comma >= text.size()) return parts;
        at = comma + 1;
    }
}

} // namespace ktrace::cli
