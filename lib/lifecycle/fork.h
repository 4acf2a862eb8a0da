// follow: children of traced processes. Without -f a child runs on untouched and clean; one that borrows its parent's
// memory (vfork, posix_spawn) is kept clean until it has a memory of its own.
#pragma once

#include "engine/hit/dispatch.h"
#include "os/tracee/stopped.h"
#include "trace/trace.h"

namespace ktrace::lifecycle {

/// A child at its first stop. `parent`: nullptr where it is not known any more.
void adopt_child(trace::Trace &trace, engine::Process *parent, os::Stopped stopped);

/// Who has made a child that was faster than the event which tells of it; `parent`: whose child it is by its status,
/// another one with CLONE_PARENT. nullptr: nobody that is known.
engine::Process *maker_of(trace::Trace &trace, Pid child, Pid parent);

/// Processes that run in the memory of one that has just been seized, before anything is armed in it: a child that is
/// born by vfork or posix_spawn at this moment, or one that clone has made to stay so. Its traps would be their end.
/// Errors: denied.
Status adopt_sharers(trace::Trace &trace, const engine::Process &owner);

/// At the entry of an exec of a child that is kept clean only: one that is to have rights of its own is let go first.
void before_exec(trace::Trace &trace, engine::Event event);

/// The guardian is told that a process has nothing of ours any more, as it has ended, or has a memory of its own. Who
/// shares what it had takes its place.
void leave_ledger(trace::Trace &trace, Pid pid);

/// Lets a process that stands at a stop go, untraced.
void let_go(trace::Trace &trace, Pid pid, os::Stopped stopped);

} // namespace ktrace::lifecycle
