// diff: two runs beside each other, by their files of JSON.
#include <ctime>
#include <string>
#include <vector>

#include "command_line/usage.h"
#include "commands.h"
#include "compare/diff.h"
#include "complain.h"
#include "expect/case.h"

namespace ktrace::cli {

namespace {

std::string shown(const std::vector<compare::DiffRow> &rows, trace::Config::Format format) {
    if (format == trace::Config::Format::csv) return compare::csv_of(rows);
    return format == trace::Config::Format::json ? compare::json_of(rows) : compare::text_of(rows);
}

/// Prints what does not hold, and writes the report. The exit status.
int conclude(const trace::Config &config, const std::vector<expect::Case> &cases) {
    std::string lines;
    for (const expect::Case &each : cases) lines += expect::line_of(each, false);
    relay(lines + expect::count_text(cases));
    if (!config.report.empty())
        if (auto written = expect::write_report(config.report, cases, {std::time(nullptr), 0}); !written) {
            complain(written.error());
            return failed;
        }
    return expect::all_hold(cases) ? 0 : expectation_broken;
}

int fail_with(const trace::Config &config, const Error &error) {
    complain(error);
    std::vector<expect::Case> cases;
    for (const trace::Expectation &each : config.expectations)
        cases.push_back(expect::not_judged(each.text, "the files could not be compared"));
    if (!config.report.empty())
        if (auto written = expect::write_report(config.report, cases, {std::time(nullptr), 0}); !written)
            complain(written.error());
    return failed;
}

} // namespace

int diff(const Invocation &invocation) {
    const trace::Config &config = invocation.config;
    auto old = compare::read_run(invocation.operands.at(0));
    if (!old) return fail_with(config, old.error());
    auto now = compare::read_run(invocation.operands.at(1));
    if (!now) return fail_with(config, now.error());
    std::vector<expect::Claim> claims;
    for (const trace::Expectation &each : config.expectations)
        claims.push_back(*expect::parse_claim(each.text, expect::Runs::two)); // it was read before
    const auto rows = compare::diff(*old, *now);
    const auto cases = compare::judge(rows, *now, claims);
    std::string text = shown(rows, config.format);
    if (config.format == trace::Config::Format::json)
        for (const expect::Case &each : cases) text += expect::json_of(each);
    if (!print(text)) return failed;
    return claims.empty() ? 0 : conclude(config, cases);
}

} // namespace ktrace::cli
