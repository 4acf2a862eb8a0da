#include "engine/space/readable.h"

#include <algorithm>
#include <string_view>

#include "base/clock.h"

namespace ktrace::engine {

namespace {

constexpr std::uint64_t least_apart_ns = 10'000'000; // reading the maps takes up to a millisecond

bool is_plain(const os::Mapping &each) {
    if (!each.readable || each.executable) return false;
    const std::string_view path = each.path;
    if (path.starts_with("/dev/")) return path == "/dev/zero" || path.starts_with("/dev/shm/");
    return path.empty() || path.starts_with("/") || path == "[heap]" || path == "[stack]" || path.starts_with("[anon:");
}

} // namespace

std::vector<agent::Range> readable_ranges(const std::vector<os::Mapping> &maps) {
    std::vector<agent::Range> ranges;
    for (const os::Mapping &each : maps) {
        if (!is_plain(each)) continue;
        if (!ranges.empty() && ranges.back().high == each.start.value)
            ranges.back().high = each.end.value;
        else if (ranges.size() < agent::most_ranges)
            ranges.push_back({each.start.value, each.end.value});
    }
    return ranges;
}

void list_readable(Process &process, bool is_urgent) {
    AgentThreads &threads = *process.space->threads;
    const std::uint64_t now = monotonic_ns();
    if (!is_urgent && now - threads.listed_at_ns() < least_apart_ns) return;
    const auto maps = os::read_maps(process.target.pid);
    if (maps) threads.show_readable(readable_ranges(*maps), now);
}

bool is_listed(const Process &process, std::uint64_t at) {
    const auto &ranges = process.space->threads->readable();
    return std::ranges::any_of(ranges, [at](const agent::Range &each) { return each.low <= at && at < each.high; });
}

} // namespace ktrace::engine
