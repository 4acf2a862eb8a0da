#include "own_options.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/text.h"
#include "check.h"
#include "option_table.h"
#include "usage.h"
#include "words.h"

namespace ktrace::cli {

namespace {

/// True for what one probe can have: what happens at it, its table, which hits.
bool is_for_one_probe(const Option &option) {
    for (std::string_view of_tables : {"sort", "top", "interval"}) // which are the command's
        if (option.name == of_tables) return false;
    return option.group == Group::handlers || option.group == Group::aggregates || option.group == Group::selection;
}

/// An option's name in a text: ` --name`.
struct Mark {
    std::size_t at = 0; // of the blank
    std::string name;   // with its dashes
    std::size_t end() const { return at + 1 + name.size(); }
};

/// The next ` --name` from `from` on that is outside of "…"; nothing: there is none.
std::optional<Mark> next_mark(std::string_view text, std::size_t from) {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz-";
    bool in_string = false;
    for (std::size_t at = from; at + 3 < text.size(); at++) {
        if (text[at] == '\\' && in_string) {
            at++;
            continue;
        }
        if (text[at] == '"') in_string = !in_string;
        if (in_string || text.substr(at, 3) != " --") continue;
        const std::size_t end = std::min(text.find_first_not_of(letters, at + 3), text.size());
        const bool is_name = end > at + 3 && (end == text.size() || text[end] == ' ' || text[end] == '=');
        if (is_name) return Mark{at, std::string(text.substr(at + 1, end - at - 1))};
    }
    return std::nullopt;
}

tl::unexpected<Error> wrong(const std::string &text, std::size_t at, std::size_t width, std::string message,
                            std::string hint = {}) {
    return fail(Error(Error::Kind::usage, std::move(message), std::move(hint), text, static_cast<int>(at),
                      static_cast<int>(width)));
}

tl::unexpected<Error> not_of_a_probe(const std::string &text, const Mark &mark) {
    const std::size_t at = mark.at + 1, width = mark.name.size();
    if (option_called(mark.name))
        return wrong(text, at, width, mark.name + " is not for one probe", "it goes outside of the quotes");
    std::vector<std::string> known;
    for (const Option &option : options())
        if (is_for_one_probe(option)) known.push_back(std::string("--") + option.name);
    auto near = text::nearest(mark.name, {known.begin(), known.end()}, 1);
    return wrong(text, at, width, "there is no option " + mark.name,
                 near.empty() ? "no function's name has a ` --' in it" : "did you mean " + near[0] + "?");
}

/// The next option of a probe's from `from` on; nothing: there is none. Errors: one that a probe cannot have;
/// `is_spec`: of the SPEC, in which any is wrong, while an EXPR may subtract.
Result<std::optional<Mark>> next_option(const std::string &text, std::size_t from, bool is_spec) {
    while (auto mark = next_mark(text, from)) {
        const Option *option = option_called(mark->name);
        if (option && is_for_one_probe(*option)) return mark;
        if (option || is_spec) return not_of_a_probe(text, *mark);
        from = mark->end();
    }
    return std::optional<Mark>();
}

/// The value of the option at `mark`, which ends at `end`.
Result<OwnOption> read_value(const std::string &text, const Mark &mark, std::size_t end) {
    const Option &option = *option_called(mark.name);
    OwnOption own{option.name, {}, mark.end()};
    const bool behind_equals = mark.end() < end && text[mark.end()] == '=';
    if (behind_equals) own.at++;
    while (own.at < end && text[own.at] == ' ') own.at++;
    own.value = text::trim(std::string_view(text).substr(own.at, end - own.at));
    const std::size_t width = std::max<std::size_t>(own.value.size(), 1);
    const bool may_have_value =
        option.takes == Takes::value || (option.takes == Takes::optional_value && behind_equals);
    if (!may_have_value && (behind_equals || !own.value.empty()))
        return option.takes == Takes::nothing
                   ? wrong(text, own.at, width, mark.name + " takes no value")
                   : wrong(text, own.at, width, "the value of " + mark.name + " goes behind a `='",
                           mark.name + "=" + own.value);
    if (may_have_value && own.value.empty())
        return wrong(text, mark.at + 1, mark.name.size(),
                     mark.name + " needs a value: " + mark.name + (behind_equals ? "=" : " ") + option.value_name);
    if (!may_have_value) own.value = option.takes == Takes::nothing ? "true" : no_value;
    return own;
}

/// Options that take each other's place.
bool replaces(const std::string &own, const std::string &of_command) {
    constexpr std::array<std::string_view, 3> tables{"count", "stats", "hist"};
    auto is_table = [&](const std::string &name) {
        return std::find(tables.begin(), tables.end(), name) != tables.end();
    };
    return own == of_command || (is_table(own) && is_table(of_command));
}

/// `error` of a value at `at`, pointing into the whole text.
Error pointing(Error error, const QuotedProbe &quoted, const OwnOption &own) {
    const bool points = error.column >= 0 && !error.source.empty();
    const std::size_t width = own.value == no_value ? 1 : std::max<std::size_t>(own.value.size(), 1);
    error.column = static_cast<int>(own.at) + (points ? error.column : 0);
    if (!points) error.width = static_cast<int>(width);
    error.source = quoted.text;
    return error;
}

constexpr std::string_view expectation = "expect";

/// The only options are expectations: counts, and prints nothing.
void keep_silent(probe::Actions &actions) {
    actions.silent = true;
    actions.aggregate = probe::Actions::Aggregate::count;
}

Status apply_to(Invocation &into, const QuotedProbe &quoted) {
    probe::Probe &probe = into.config.probes.at(quoted.probe);
    Invocation alone; // a command line of this probe's own
    bool only_expects = true;
    for (const GivenOption &given : into.given) {
        const Option &option = *option_called("--" + given.name);
        const bool replaced = std::any_of(quoted.options.begin(), quoted.options.end(),
                                          [&](const OwnOption &own) { return replaces(own.name, given.name); });
        if (!is_for_one_probe(option) || replaced || option.name == expectation) continue;
        only_expects = false;
        if (auto applied = option.apply(alone, given.value); !applied) return applied;
    }
    for (const OwnOption &own : quoted.options) {
        only_expects = only_expects && own.name == expectation;
        if (auto applied = option_called("--" + own.name)->apply(alone, own.value); !applied)
            return fail(pointing(applied.error(), quoted, own));
    }
    for (const trace::Expectation &each : alone.config.expectations)
        into.config.expectations.push_back({each.text, probe.number});
    if (only_expects) keep_silent(alone.config.actions);
    if (auto checked = check_actions(alone.config.actions, {probe.kind}); !checked)
        return wrong(quoted.text, quoted.spec.size(), quoted.text.size() - quoted.spec.size(), checked.error().message,
                     checked.error().hint);
    probe.own = std::make_shared<const probe::OwnOptions>(
        probe::OwnOptions{std::move(alone.config.actions), quoted.text, quoted.spec.size()});
    return {};
}

} // namespace

Result<QuotedProbe> split_quoted(const std::string &text) {
    QuotedProbe quoted{text, {}, {}, 0};
    auto mark = next_option(text, 0, true);
    if (!mark) return fail(mark.error());
    const std::size_t end = *mark ? (*mark)->at : text.size();
    quoted.spec = *mark ? std::string(text.substr(0, text.find_last_not_of(' ', end) + 1)) : text;
    while (*mark) {
        auto next = next_option(text, (*mark)->end(), false);
        if (!next) return fail(next.error());
        auto own = read_value(text, **mark, *next ? (*next)->at : text.size());
        if (!own) return fail(own.error());
        quoted.options.push_back(std::move(*own));
        mark = next;
    }
    return quoted;
}

Status apply_own_options(Invocation &into) {
    for (const QuotedProbe &quoted : into.quoted)
        if (auto applied = apply_to(into, quoted); !applied) return applied;
    const bool only_expects = std::all_of(into.given.begin(), into.given.end(), [](const GivenOption &given) {
        return given.name == expectation || !is_for_one_probe(*option_called("--" + given.name));
    });
    const bool expects = std::any_of(into.given.begin(), into.given.end(),
                                     [](const GivenOption &given) { return given.name == expectation; });
    if (expects && only_expects) keep_silent(into.config.actions);
    return {};
}

} // namespace ktrace::cli
