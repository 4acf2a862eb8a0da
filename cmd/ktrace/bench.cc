// bench: what a hit costs on this machine, in the table of the kernel's Documentation/kprobes.txt (2.6.31, section 6),
// whose figures stand beside. The traced program is a child of ktrace's own that calls an empty function.
#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "commands.h"
#include "complain.h"
#include "session/session.h"
#include "voice.h"

namespace ktrace::cli {

namespace {

constexpr std::uint64_t traced_calls = 50'000, untraced_calls = 20'000'000;

struct Row {
    const char *name;
    const char *probes; // a letter each
    const char *what;
    double kernel[3]; // µs: Pentium M, Opteron, POWER5
};

constexpr std::array<Row, 5> bench_rows{{{"k", "k", "a probe", {0.57, 0.49, 0.77}},
                                         {"j", "j", "an entry probe", {1.00, 0.76, 1.31}},
                                         {"r", "r", "a return probe", {0.92, 0.80, 1.26}},
                                         {"kr", "kr", "both k and r", {0.99, 0.82, 1.45}},
                                         {"jr", "jr", "both j and r", {1.40, 1.07, 1.99}}}};

volatile std::uint64_t calls_made;

__attribute__((noinline)) void called(std::uint64_t n) { calls_made = n; }

const volatile unsigned char *code_of_called() {
    return reinterpret_cast<const volatile unsigned char *>(reinterpret_cast<std::uintptr_t>(&called));
}

/// Nanoseconds a call.
double time_calls(std::uint64_t count) {
    std::uint64_t start = monotonic_ns();
    for (std::uint64_t i = 0; i < count; i++) called(i);
    return static_cast<double>(monotonic_ns() - start) / static_cast<double>(count);
}

/// In the child: waits until the function has a probe, calls it, and reports how long that took. It is stopped while it
/// is armed, so the first byte that changes shows that all is.
[[noreturn]] void be_traced(int answer, pid_t parent) {
    unsigned char before = *code_of_called();
    while (*code_of_called() == before && ::getppid() == parent) ::sched_yield();
    double each = time_calls(traced_calls);
    ssize_t written = ::write(answer, &each, sizeof each);
    ::_exit(written == sizeof each ? 0 : 1);
}

trace::Config config_for(pid_t child, const Row &row) {
    trace::Config config;
    config.pids = {child};
    config.quiet = true;
    config.engine = trace::Config::Engine::trap;
    config.output = "/dev/null";
    config.actions.aggregate = probe::Actions::Aggregate::count;
    auto address = reinterpret_cast<std::uintptr_t>(&called);
    for (const char *kind = row.probes; *kind != 0; kind++) {
        auto spec = probe::parse_spec(fmt::format("{:#x}", address));
        auto number = static_cast<std::uint32_t>(config.probes.size() + 1);
        if (spec) config.probes.push_back({number, static_cast<probe::Kind>(*kind), std::move(*spec)});
    }
    return config;
}

/// Nanoseconds a call under the probes of a row; nothing: it could not be traced, which has been reported, or was
/// ended.
std::optional<double> measure(const Row &row) {
    int ends[2];
    if (::pipe(ends) != 0) return std::nullopt;
    Fd answer(ends[0]), told(ends[1]);
    pid_t self = ::getpid();
    pid_t child = ::fork();
    if (child == 0) be_traced(told.get(), self);
    told = Fd();
    if (child < 0) return std::nullopt;
    int status = session::attach(config_for(child, row), voice());
    double each = 0;
    bool answered = status == 0 && ::read(answer.get(), &each, sizeof each) == sizeof each;
    if (!answered) ::kill(child, SIGKILL); // whose end the trace has taken, else that of ktrace takes it
    return answered ? std::optional(each) : std::nullopt;
}

} // namespace

int bench(const Invocation &) {
    double untraced = time_calls(untraced_calls);
    if (!print("microseconds a hit         this machine   Pentium M 1.5 GHz   Opteron 2.0 GHz   POWER5 1.7 GHz\n"))
        return 1;
    for (const Row &row : bench_rows) {
        auto traced = measure(row);
        if (!traced) return 1;
        const std::string line =
            fmt::format("{:<3} {:<20} {:>14.2f} {:>19.2f} {:>17.2f} {:>16.2f}\n", row.name, row.what,
                        (*traced - untraced) / 1000, row.kernel[0], row.kernel[1], row.kernel[2]);
        if (!print(line)) return 1;
    }
    return print("This machine: ktrace, from user space. The others: kprobes of Linux 2.6.31, in the kernel.\n") ? 0
                                                                                                                 : 1;
}

} // namespace ktrace::cli
