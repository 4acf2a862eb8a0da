// JUnit's XML and TAP. A case is broken where its claim does not hold, and an error where it was not judged.
#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/xml.h"
#include "expect/case.h"
#include "expect/case_text.h"
#include "output/notation.h"
#include "output/writer.h"

namespace ktrace::expect {

namespace {

std::size_t count_of(const std::vector<Case> &cases, Case::End end) {
    return static_cast<std::size_t>(
        std::count_if(cases.begin(), cases.end(), [end](const Case &each) { return each.end == end; }));
}

std::string xml_of(const Case &judged) {
    const std::string message = judged_text(judged, false);
    std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\"",
                                  text::in_xml(function_of(judged)), text::in_xml(claim_of(judged)));
    if (judged.end == Case::End::holds) return out + "/>\n";
    const char *element = judged.end == Case::End::broken ? "failure" : "error";
    out += fmt::format(">\n      <{} type=\"{}\" message=\"{}\">", element,
                       judged.end == Case::End::broken ? "expectation" : "not judged", text::in_xml(message));
    return out + fmt::format("{}</{}>\n    </testcase>\n", text::in_xml(judged.event), element);
}

/// As a description: a `#` would begin a directive.
std::string in_tap(const std::string &text) {
    std::string out;
    for (char letter : text) {
        if (letter == '#' || letter == '\\') out += '\\';
        out += letter;
    }
    return out;
}

std::string tap_line(const Case &judged, std::size_t number) {
    std::string out = fmt::format("{}ok {} - {}\n", judged.end == Case::End::holds ? "" : "not ", number,
                                  in_tap(function_of(judged) + ": " + claim_of(judged)));
    if (judged.end == Case::End::holds) return out;
    std::string message;
    output::append_json_string(message, judged_text(judged, false)); // which is YAML, too
    return out + fmt::format("  ---\n  message: {}\n  severity: {}\n  ...\n", message,
                             judged.end == Case::End::broken ? "fail" : "error");
}

} // namespace

std::string junit_of(const std::vector<Case> &cases, ReportTime time) {
    std::tm utc{};
    const std::time_t began = time.began;
    gmtime_r(&began, &utc);
    char timestamp[32] = {};
    std::strftime(timestamp, sizeof timestamp, "%Y-%m-%dT%H:%M:%S", &utc);
    const std::string counts = fmt::format(R"(tests="{}" failures="{}" errors="{}" time="{:.3f}")", cases.size(),
                                           count_of(cases, Case::End::broken), count_of(cases, Case::End::not_judged),
                                           static_cast<double>(time.took_ns) / 1e9);
    std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
    out += fmt::format(
        "  <testsuite name=\"ktrace\" package=\"ktrace\" id=\"0\" hostname=\"localhost\" timestamp=\"{}\" {}>\n"
        "    <properties/>\n",
        timestamp, counts);
    for (const Case &each : cases) out += xml_of(each);
    return out + "    <system-out/>\n    <system-err/>\n  </testsuite>\n</testsuites>\n";
}

std::string tap_of(const std::vector<Case> &cases) {
    std::string out = fmt::format("TAP version 13\n1..{}\n", cases.size());
    for (std::size_t i = 0; i < cases.size(); i++) out += tap_line(cases[i], i + 1);
    return out;
}

bool is_report_name(std::string_view path) { return path.ends_with(".xml") || path.ends_with(".tap"); }

Status write_report(const std::string &path, const std::vector<Case> &cases, ReportTime time) {
    auto file = output::Writer::create(path);
    if (!file) return fail(file.error());
    file->write(path.ends_with(".tap") ? tap_of(cases) : junit_of(cases, time));
    file->flush();
    return file->take_error();
}

} // namespace ktrace::expect
