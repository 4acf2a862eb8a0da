// fork: children of traced processes. Without -f a child runs on untouched and clean; one that borrows its parent's
// memory (vfork, posix_spawn) is kept clean until it has a memory of its own.
#pragma once

#include "engine/hit/dispatch.h"
#include "os/tracee/stopped.h"
#include "trace/trace.h"

namespace ktrace::lifecycle {

/// A child at its first stop. `parent`: nullptr where it is not known any more.
void adopt_child(trace::Trace &trace, engine::Process *parent, os::Stopped stopped);

/// The process that has made a child whose stop came before its maker's event. `parent`: the child's parent by its
/// status, which is another process with CLONE_PARENT. nullptr: it is not known.
engine::Process *maker_of(trace::Trace &trace, Pid child, Pid parent);

/// Processes that run in the memory of one that has just been seized, before anything is armed in it: a child that is
/// born by vfork or posix_spawn at this moment, or one that clone has made to stay so. The traps would kill them.
/// Errors: denied.
Status adopt_sharers(trace::Trace &trace, const engine::Process &owner);

/// At the entry of an exec of a child that is only kept clean: if the program has rights of its own, ktrace detaches
/// first.
void before_exec(trace::Trace &trace, engine::Event event);

/// Notes in the ledger that a process has nothing of ktrace's any more: it has ended, or has a memory of its own. A
/// process that shared its memory takes its place.
void leave_ledger(trace::Trace &trace, Pid pid);

/// Detaches from a process that stands at a stop.
void let_go(trace::Trace &trace, Pid pid, os::Stopped stopped);

} // namespace ktrace::lifecycle
