#include "session/verdicts.h"

#include <ctime>

#include <unistd.h>

#include "base/clock.h"
#include "output/writer.h"
#include "report/records.h"

namespace ktrace::session {

Verdicts::Verdicts(const trace::Config &config)
    : config_(config), began_(std::time(nullptr)), began_ns_(monotonic_ns()) {}

Status Verdicts::begin(trace::Trace &trace) {
    if (config_.expectations.empty()) return {};
    auto expectations = judging::Expectations::begin(trace);
    if (!expectations) return fail(expectations.error());
    expectations_ = std::move(*expectations);
    return {};
}

void Verdicts::judge(trace::Trace &trace) {
    if (!expectations_) return;
    report::report_records(trace, false);
    cases_ = expectations_->judge(trace);
    if (config_.format != trace::Config::Format::json) return;
    for (const expect::Case &each : cases_) trace.output.writer->write(expect::json_of(each));
}

bool Verdicts::conclude(trace::Trace &trace) {
    if (!expectations_) return true;
    std::string text;
    for (const expect::Case &each : cases_) text += expect::line_of(each, config_.exact_times);
    if (!config_.quiet) text += expect::count_text(cases_);
    output::Writer errors(STDERR_FILENO, "standard error");
    errors.write(text);
    errors.flush();
    if (auto written = write_report(); !written) {
        trace.voice.complain(written.error());
        trace.trouble = 1;
    }
    return expect::all_hold(cases_);
}

void Verdicts::give_up(const trace::Voice &voice) {
    if (config_.expectations.empty()) return;
    cases_ = judging::not_judged(config_, "the trace failed");
    if (auto written = write_report(); !written) voice.complain(written.error());
}

Status Verdicts::write_report() const {
    if (config_.report.empty()) return {};
    return expect::write_report(config_.report, cases_, {began_, monotonic_ns() - began_ns_});
}

} // namespace ktrace::session
