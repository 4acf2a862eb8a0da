#include "output/time_text.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace ktrace::output {

namespace {

struct Unit {
    const char *name;
    double ns;
};
constexpr std::array<Unit, 4> units{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};

/// The digits of a value with so many that mean something, and the whole part in any case.
std::string digits_of(double value, int digits) {
    const int whole = value >= 1000 ? 4 : value >= 100 ? 3 : value >= 10 ? 2 : 1;
    return fmt::format("{:.{}f}", value, std::max(0, digits - whole));
}

struct TimeParts {
    std::string digits;
    const char *unit;
};

TimeParts parts_of(double ns, TimeStyle style) {
    ns = std::round(ns);
    if (style.is_exact) return {fmt::format("{:.0f}", ns), units[0].name};
    const int digits = style.digits;
    for (std::size_t i = 0; i + 1 < units.size(); i++) {
        // A time that rounds up to 1000 belongs to the next unit.
        const double largest = 1000 - (i == 0 ? 0 : std::pow(10, 3 - digits) / 2);
        if (ns / units[i].ns < largest)
            return {i == 0 ? fmt::format("{:.0f}", ns) : digits_of(ns / units[i].ns, digits), units[i].name};
    }
    return {digits_of(ns / units.back().ns, digits), units.back().name};
}

std::string joined(const TimeParts &parts, TimeStyle style) { return parts.digits + style.separator + parts.unit; }

} // namespace

std::string time_text(double ns, TimeStyle style) { return joined(parts_of(ns, style), style); }

std::string short_time_text(double ns, TimeStyle style) {
    TimeParts parts = parts_of(ns, style);
    if (parts.digits.find('.') != std::string::npos) {
        parts.digits.erase(parts.digits.find_last_not_of('0') + 1);
        if (parts.digits.ends_with('.')) parts.digits.pop_back();
    }
    return joined(parts, style);
}

std::string measured_text(const MeasuredTime &time, TimeStyle style) {
    if (time.error_ns > 0 && time.ns < time.error_ns) return '<' + short_time_text(time.error_ns, style);
    const bool is_rough = !(time.error_ns > 0) || time.error_ns > time.ns / 4 || time.is_half_taken;
    return (is_rough ? "~" : "") + time_text(time.ns, style);
}

} // namespace ktrace::output
