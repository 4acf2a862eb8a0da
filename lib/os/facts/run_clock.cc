#include "os/facts/run_clock.h"

#include <array>
#include <charconv>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "os/proc/procfs.h"

namespace ktrace::os {

namespace {

std::string task_file(Pid pid, Tid tid, const char *name) {
    return "/proc/" + std::to_string(pid.value) + "/task/" + std::to_string(tid.value) + "/" + name;
}

std::optional<std::uint64_t> read_exec_start(const std::string &path) {
    auto text = read_file(path);
    return text ? parse_exec_start(*text) : std::nullopt;
}

} // namespace

std::optional<std::uint64_t> parse_exec_start(std::string_view text) {
    constexpr std::uint64_t ns_in_ms = 1'000'000;
    constexpr std::size_t digits = 6; // behind the point
    for (std::string_view line : text::split(text, '\n')) {
        if (!line.starts_with("se.exec_start")) continue;
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return std::nullopt;
        const std::string_view number = text::trim(line.substr(colon + 1));
        const std::size_t point = number.find('.');
        if (point == std::string_view::npos || number.size() != point + 1 + digits) return std::nullopt;
        auto ms = text::parse_u64(number.substr(0, point));
        std::uint64_t ns = 0; // may begin with zeros
        std::from_chars(number.data() + point + 1, number.data() + number.size(), ns);
        return ms ? std::optional(*ms * ns_in_ms + ns) : std::nullopt;
    }
    return std::nullopt;
}

std::optional<Ran> parse_ran(std::string_view text) {
    std::array<std::uint64_t, 3> numbers{}; // ran, waited, how often
    std::size_t known = 0;
    for (std::string_view each : text::split(text::trim(text), ' ')) {
        auto number = text::parse_u64(each);
        if (!number || known == numbers.size()) return std::nullopt;
        numbers[known++] = *number;
    }
    if (known != numbers.size()) return std::nullopt;
    return Ran{numbers[0] + numbers[1], numbers[2]};
}

RunClock::RunClock() {
    CPU_ZERO(&allowed_);
    ::sched_getaffinity(0, sizeof allowed_, &allowed_);
}

RunClock::~RunClock() { ::sched_setaffinity(0, sizeof allowed_, &allowed_); }

std::optional<std::int64_t> RunClock::ahead_of_monotonic(int processor) {
    auto [known, is_new] = ahead_.try_emplace(processor);
    if (!is_new) return known->second;
    cpu_set_t there;
    CPU_ZERO(&there);
    CPU_SET(static_cast<unsigned>(processor), &there);
    if (::sched_setaffinity(0, sizeof there, &there) != 0) return std::nullopt;
    ::sched_yield(); // brings our own up to date
    if (auto own = read_exec_start("/proc/thread-self/sched"))
        known->second = static_cast<std::int64_t>(*own) - static_cast<std::int64_t>(monotonic_ns());
    return known->second;
}

std::optional<std::uint64_t> RunClock::rested_ns(Pid pid, Tid tid) {
    auto stat = read_task_stat(pid, tid);
    auto ran = read_exec_start(task_file(pid, tid, "sched"));
    if (!stat || stat->processor < 0 || stat->processor >= CPU_SETSIZE || !ran || *ran == 0) return std::nullopt;
    auto ahead = ahead_of_monotonic(stat->processor);
    if (!ahead) return std::nullopt;
    const std::int64_t rested = static_cast<std::int64_t>(monotonic_ns()) + *ahead - static_cast<std::int64_t>(*ran);
    return rested > 0 ? static_cast<std::uint64_t>(rested) : 0;
}

RunCount::RunCount(Pid pid, Tid tid) : file_(::open(task_file(pid, tid, "schedstat").c_str(), O_RDONLY | O_CLOEXEC)) {}

std::optional<Ran> RunCount::read() {
    std::array<char, 96> text{};
    const ssize_t size = file_ ? ::pread(file_.get(), text.data(), text.size(), 0) : -1;
    if (size <= 0) return std::nullopt;
    return parse_ran({text.data(), static_cast<std::size_t>(size)});
}

} // namespace ktrace::os
