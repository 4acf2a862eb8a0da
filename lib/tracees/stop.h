// stop: brings the tasks of an address space that is to be left to stops from which they can be let go.
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

/// Stops all tasks that have to be stopped, until no new one comes: those that run, or have a mask, signal or register
/// of ktrace's. Those that run have a moment to fall asleep, and those whose calls would be cut short (choice.h) have
/// longer to come out of them. False: one of them cannot be stopped.
bool hold_tasks(trace::Trace &trace, const SpacePointer &space, HeldTasks &held);

/// False: it is gone. One that stands at a stop is not asked: that stop is served first.
bool ask_to_stop(trace::Trace &trace, Tid tid);

/// Those that stand still while a task is waited for, which may be waiting for them in the kernel (for a page that one
/// of them fills in, for a file system that one of them serves).
enum class Others : std::uint8_t { stay, run_where_it_needs_them };

/// While a task is waited for that was asked to stop. A parent in vfork stops only when those that borrow its memory
/// have gone on: their stops are served, and those of them that are `held` run on.
void let_borrowers_run(trace::Trace &trace, const SpacePointer &space, Tid waiting, HeldTasks &held);

/// A task that was held runs on; where job control has stopped its process, it stays stopped with that.
void run_on(trace::Trace &trace, engine::Task &task, os::Stopped stopped);

struct MovedOut {
    std::optional<os::Stopped> stopped; // nothing: it has ended, or left the process's memory;
    bool is_stuck = false;              // or it cannot be stopped
};

/// Brings a task to a stop from which it can be let go. Of those that are `held` some may have to run on for that.
MovedOut move_out_of_slot(trace::Trace &trace, engine::Process &process, Tid tid, HeldTasks &held,
                          Others others = Others::stay);

/// Returns when no fork (or clone of the memory) that began before is under way any more. A task that runs has a moment
/// to fall asleep elsewhere, and is stopped then; its stop is served later. One that does not stop, since it
/// waits for a page that another of them fills in, is given up in the end.
void let_forks_end(trace::Trace &trace, const SpacePointer &space);

} // namespace ktrace::tracees
