// run_until: the one loop. Stops of tracees are waited for and served here, until a condition is true.
//
// Stops of all tasks are served as they were seen (os/tracee/wait.h). While a task is held, a wait for any would answer
// with its stop again: there each is asked by name, and pauses are made. A task that was asked to stop is waited for
// alone.
//
// Tracees are waited for elsewhere only where there is nothing to serve: a task that is being started or makes a system
// call for ktrace (os/tracee), and the child whose stops are measured, which has an engine of its own (calibrate.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "os/tracee/wait.h"
#include "trace/trace.h"

namespace ktrace::trace {

/// How long a stop is waited for; `briefly`: a millisecond or so.
using Wait = os::Waiter::Block;

/// Serves a stop; its task is resumed, or was detached.
void serve(Trace &trace, const os::Stop &stop);

struct Serving {
    std::function<Wait()> wait;                        // for the next stop
    std::function<void(const os::Stop *)> before = {}; // called before it is served; nullptr: none came in time
};

/// Serves stops until `is_done`, which is asked before each wait, or until no tracee is left. No task is held.
void run_until(Trace &trace, const std::function<bool()> &is_done, const Serving &serving);

/// The same where tasks may be held, or the condition is not asked for each stop: of the other tasks each is asked
/// once, and then is a pause, in which stops wait.
void serve_each_until(Trace &trace, const std::function<bool()> &is_done, std::uint64_t pause_ns);

/// Serves the stop at which a task stands already, of each task at most one: a task that stops as fast as it is served
/// does not keep it.
void serve_each(Trace &trace);

/// Serves the next stop of one task. False: there is none, with Wait::yes since the task is gone.
bool serve_next_of(Trace &trace, Tid tid, Wait wait);

/// The next stop of one task, which the caller sees to; nothing: the task is gone.
std::optional<os::Stop> next_stop_of(Trace &trace, Tid tid);

/// Of a task that was asked to stop.
struct Answer {
    enum class Kind : std::uint8_t { stands, served, gone, given_up } kind = Kind::gone;
    std::optional<os::Stop> stop; // stands: at the interrupt's stop or a group stop, and the caller sees to it
};

/// Waits for the next stop of a task that was asked to stop. If that is another one, the task is asked again and the
/// stop is served: the task stops anew before it runs, however soon its next hit would be, and can start no other task.
/// `gives_up` is asked every millisecond of the wait, and may serve others meanwhile.
Answer await_answer(Trace &trace, Tid tid, const std::function<bool()> &gives_up);

/// Nothing is served for so long: tasks run on.
void pause(std::uint64_t ns);

} // namespace ktrace::trace
