// choice: which task of a process is stopped, where any one will do: to make system calls for ktrace.
//
// Invariant: a call that another process answers, or that has moved some bytes already, is interrupted only where for
// `patience_for_calls_ns` no other task could be had.
#pragma once

#include <compare>
#include <optional>
#include <unordered_set>

#include "os/facts/blocked_syscall.h"
#include "trace/trace.h"

namespace ktrace::tracees {

inline constexpr std::uint64_t patience_for_calls_ns = 2'000'000'000;

/// A task that may be stopped. The less, the better: first by how many seccomp filters judge its calls, since one may
/// end the process.
struct Candidate {
    int filters = 0; // that are not suspended for calls of ktrace's
    os::Interrupted then = os::Interrupted::runs;
    bool sleeps_deeply = false; // in uninterruptible sleep: it stops when that has ended
    Tid tid;

    /// Only where no other task can be had for a while.
    bool is_last_choice() const { return then == os::Interrupted::cut_short; }
    std::weak_ordering operator<=>(const Candidate &other) const;
};

/// True where fewer seccomp filters judge the calls of `one`. Filters that ktrace may suspend do not count.
bool is_freer(Tid one, Tid other);

/// The best task of the process, of those that are not among `others`; nothing: none is left.
std::optional<Candidate> best_task_but(const trace::Trace &trace, Pid pid, const std::unordered_set<pid_t> &others);

/// The task to ask next, when those that were `asked` have not stopped yet: the best of the others, or else the best of
/// all, and `asked` is empty again. A last choice is waited for until it is another one, but not longer than
/// patience_for_calls_ns since `since_ns`; other stops are served meanwhile. Nothing: no task is left.
std::optional<Tid> task_to_ask(trace::Trace &trace, Pid pid, std::unordered_set<pid_t> &asked, std::uint64_t since_ns);

} // namespace ktrace::tracees
