#include "expect/case.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "expect/case_text.h"
#include "output/notation.h"
#include "output/table_lines.h"
#include "output/time_text.h"

namespace ktrace::expect {

namespace {

/// A claim is the user's own text, with quotes in it.
std::string plain(const std::string &claim) {
    const bool is_printable =
        std::all_of(claim.begin(), claim.end(), [](char letter) { return letter >= ' ' && letter < 0x7f; });
    return is_printable ? claim : text::escape(claim);
}

std::string value_text(const Figure &figure, bool exact_times) {
    if (!figure.is_time) return output::figure(figure.value);
    return output::measured_text({figure.value, figure.error, false}, output::event_style(exact_times));
}

/// `12.34 ms in 1200 calls`; of several figures each with its name.
std::string seen_text(const Case &judged, bool exact_times) {
    if (!judged.seen_text.empty()) return judged.seen_text;
    std::string text;
    bool has_values = false;
    for (const auto &[name, figure] : judged.seen) {
        if (!text.empty()) text += ", ";
        if (judged.seen.size() > 1) text += plain(name) + ' ';
        text += value_text(figure, exact_times);
        has_values = has_values || !base_of(name).starts_with("count");
    }
    if (has_values)
        text +=
            fmt::format(" in {} {}{}", judged.hits, judged.is_of_calls ? "call" : "hit", judged.hits == 1 ? "" : "s");
    return text;
}

} // namespace

std::string function_of(const Case &judged) {
    std::string name = text::escape(judged.symbol);
    if (judged.which.empty()) return name;
    return judged.which.starts_with(judged.symbol) ? text::escape(judged.which)
                                                   : name + ' ' + text::escape(judged.which);
}

std::string claim_of(const Case &judged) {
    return plain(judged.claim) + (judged.key.empty() ? "" : " (" + judged.key + ')');
}

std::string judged_text(const Case &judged, bool exact_times) {
    std::string text = "expected " + plain(judged.claim);
    if (std::string seen = seen_text(judged, exact_times); !seen.empty()) text += ", saw " + seen;
    if (!judged.reason.empty()) text += ": " + judged.reason;
    return text;
}

Case make_case(const Claim &claim, std::string symbol, std::string module) {
    Case made;
    made.given = claim.given;
    made.claim = claim.text;
    made.symbol = std::move(symbol);
    made.module = std::move(module);
    return made;
}

Case not_judged(const std::string &given, std::string reason) {
    auto claim = parse_claim(given, Runs::two);
    Case made;
    made.given = given;
    made.claim = claim ? claim->text : given;
    made.symbol = claim && !claim->whose.empty() ? claim->whose : "all";
    made.end = Case::End::not_judged;
    made.reason = std::move(reason);
    return made;
}

bool judge_case(Case &into, const Claim &claim, const Figures &figures) {
    const Verdict verdict = judge(claim, figures);
    if (verdict == Verdict::left_out) return false;
    into.end = verdict == Verdict::holds ? Case::End::holds : Case::End::broken;
    for (const std::string &name : claim.figures) {
        const bool is_known =
            std::any_of(into.seen.begin(), into.seen.end(), [&](const auto &each) { return each.first == name; });
        if (!is_known) into.seen.emplace_back(name, figures.at(name));
    }
    return true;
}

std::string line_of(const Case &judged, bool exact_times) {
    if (judged.end == Case::End::holds) return {};
    std::string name = function_of(judged);
    if (!judged.module.empty()) name += " [" + text::escape(judged.module) + ']';
    if (!judged.key.empty()) name += ' ' + judged.key;
    return "ktrace: " + name + ": " + judged_text(judged, exact_times) + '\n' + judged.event;
}

std::string count_text(const std::vector<Case> &cases) {
    if (cases.empty()) return {};
    const auto holding =
        std::count_if(cases.begin(), cases.end(), [](const Case &each) { return each.end == Case::End::holds; });
    return fmt::format("ktrace: {} of {} expectations hold\n", holding, cases.size());
}

bool all_hold(const std::vector<Case> &cases) {
    return std::all_of(cases.begin(), cases.end(), [](const Case &each) { return each.end == Case::End::holds; });
}

std::string json_of(const Case &judged) {
    std::string out = R"({"type":"expectation","expect":)";
    output::append_json_string(out, judged.given);
    out += ",\"symbol\":";
    output::append_json_string(out, judged.symbol);
    if (!judged.module.empty()) {
        out += ",\"module\":";
        output::append_json_string(out, judged.module);
    }
    if (!judged.which.empty()) {
        out += ",\"which\":";
        output::append_json_string(out, judged.which);
    }
    if (!judged.key_json.empty()) out += ",\"key\":" + judged.key_json;
    out += fmt::format(",\"holds\":{}", judged.end == Case::End::holds);
    if (!judged.seen.empty()) {
        out += ",\"seen\":";
        const char *separator = "{";
        for (const auto &[name, figure] : judged.seen) {
            out += separator;
            output::append_json_string(out, name);
            out += ':';
            output::JsonNotation::floating(out, static_cast<long double>(figure.judged()), sizeof(double));
            separator = ",";
        }
        out += '}';
    }
    if (!judged.reason.empty()) {
        out += ",\"reason\":";
        output::append_json_string(out, judged.reason);
    }
    return out + "}\n";
}

} // namespace ktrace::expect
