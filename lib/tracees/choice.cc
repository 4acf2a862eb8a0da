#include "tracees/choice.h"

#include <limits>
#include <tuple>

#include <linux/seccomp.h>

#include "base/clock.h"
#include "os/self/own_signals.h"
#include "trace/run_until.h"

namespace ktrace::tracees {

namespace {

/// Strict mode ends the thread for any call.
int filters_of(Tid tid) {
    static const bool may_suspend = os::may_suspend_seccomp();
    auto status = may_suspend ? std::nullopt : os::read_status(tid.value);
    if (status && status->seccomp == SECCOMP_MODE_STRICT) return std::numeric_limits<int>::max();
    return status ? status->seccomp_filters : 0;
}

} // namespace

std::weak_ordering Candidate::operator<=>(const Candidate &other) const {
    auto rank = [](const Candidate &one) {
        return std::tuple(one.filters, one.is_last_choice(), one.sleeps_deeply, one.then);
    };
    return rank(*this) <=> rank(other);
}

bool is_freer(Tid one, Tid other) { return filters_of(one) < filters_of(other); }

std::optional<Candidate> best_task_but(const trace::Trace &trace, Pid pid, const std::unordered_set<pid_t> &others) {
    std::optional<Candidate> best;
    for (const auto &[id, task] : trace.engine.tasks) {
        if (task.pid != pid || others.contains(id) || os::has_ended(task.tid)) continue;
        const Candidate candidate{filters_of(task.tid), os::interrupted(pid, task.tid), os::sleeps_deeply(task.tid),
                                  task.tid};
        if (!best || candidate < *best) best = candidate;
    }
    return best;
}

std::optional<Tid> task_to_ask(trace::Trace &trace, Pid pid, std::unordered_set<pid_t> &asked, std::uint64_t since_ns) {
    constexpr std::uint64_t moment_ns = 1'000'000;
    std::optional<Candidate> best;
    auto is_chosen = [&] {
        best = best_task_but(trace, pid, asked);
        if (!best && !asked.empty()) {
            asked.clear();
            best = best_task_but(trace, pid, asked);
        }
        return !best || !best->is_last_choice() || monotonic_ns() - since_ns >= patience_for_calls_ns ||
               os::OwnSignals::are_pending();
    };
    trace::serve_each_until(trace, is_chosen, moment_ns);
    return best ? std::optional(best->tid) : std::nullopt;
}

} // namespace ktrace::tracees
