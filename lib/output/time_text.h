// Times as people read them: a few digits with a unit, and no number that is not known.
#pragma once

#include <cstdint>
#include <string>

namespace ktrace::output {

/// How a time is written.
struct TimeStyle {
    int digits = 4; // that mean something
    const char *separator = " ";
    bool is_exact = false; // whole nanoseconds
};

/// Events have four digits and a blank, tables three and none.
constexpr TimeStyle event_style(bool is_exact) { return {4, " ", is_exact}; }
constexpr TimeStyle table_style(bool is_exact) { return {3, "", is_exact}; }
constexpr TimeStyle summary_style = {3, " ", false};

/// `1.234 us`, `842 ns`, `75.00 s`; in a table `1.23us`. A part of a nanosecond is rounded away.
std::string time_text(double ns, TimeStyle style);

/// The same without zeros at the end: `1 us`, `500ns`.
std::string short_time_text(double ns, TimeStyle style);

/// A measured time.
struct MeasuredTime {
    double ns = 0;
    double error_ns = 0; // 0: not known
    bool is_half_taken = false;
};

/// `<1 us` of a time below its error; `~3.421 us` of one with an error above a quarter of it or that is not known, and
/// of one of which half or more was taken off.
std::string measured_text(const MeasuredTime &time, TimeStyle style);

} // namespace ktrace::output
