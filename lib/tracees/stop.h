// hold: brings the tasks of an address space that is to be left to stops from which they can be let go.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "os/tracee/stopped.h"
#include "trace/trace.h"

namespace ktrace::tracees {

using SpacePointer = std::shared_ptr<engine::AddressSpaceState>;
using HeldTasks = std::map<pid_t, os::Stopped>;

/// All tasks that run in the memory.
std::vector<Tid> tasks_in(const trace::Trace &trace, const SpacePointer &space);

/// Sleeps in a call that is not to be interrupted, though it has to be stopped once: its debug registers are armed.
bool is_spared(const engine::Task &task);
/// Does one sleep there who is?
bool has_spared(const trace::Trace &trace, const SpacePointer &space);

/// Those who sleep in calls with a time-out that would begin anew.
enum class Spare : std::uint8_t { yes, no };

/// Stops all that run, until nobody new comes.
void hold_tasks(trace::Trace &trace, const SpacePointer &space, Spare spare, HeldTasks &held);

/// Those that stand still while a task is waited for, which may be waiting for them in the kernel (for a page that one
/// of them fills in, for a file system that one of them serves).
enum class Others : std::uint8_t { stay, run_where_it_needs_them };

/// The next stop of a task that was asked to stop; nothing: it is gone. A parent in vfork stops only when those that
/// borrow its memory have gone on: what they stop for is served meanwhile, and who of them is `held` runs on. A Ticker
/// runs.
std::optional<os::Stop> await_stop(trace::Trace &trace, const SpacePointer &space, Tid tid, HeldTasks &held,
                                   Others others = Others::stay);

/// The same, for a millisecond at most: nothing, and errno is EINTR, where it has not stopped yet.
std::optional<os::Stop> await_stop_once(trace::Trace &trace, const SpacePointer &space, Tid tid, HeldTasks &held);

/// A task that was held runs on; where job control has stopped its process, it stays stopped with that.
void run_on(trace::Trace &trace, engine::Task &task, os::Stopped stopped);

/// Brings a task to a stop from which it can be let go; nothing: it has ended, or left the process's memory. Of those
/// that are `held` some may have to run on for that. A Ticker runs.
std::optional<os::Stopped> bring_out(trace::Trace &trace, engine::Process &process, Tid tid, HeldTasks &held,
                                     Others others = Others::stay);

/// Serves the stop at which a task stands already, of each task at most one: who stops as fast as it is served keeps
/// nobody.
void serve_once(trace::Trace &trace);

} // namespace ktrace::tracees
