// follow: children of traced processes. Without -f a child runs on untouched and clean; one that borrows its parent's
// memory (vfork, posix_spawn) is kept clean until it has a memory of its own.
#pragma once

#include "os/stopped.h"
#include "session/state.h"

namespace ktrace::session {

/// A child at its first stop. `parent`: nullptr where it is not known any more.
void adopt_child(State &state, trap::Traced *parent, os::Stopped stopped);

/// Lets a process that stands at a stop go, untraced.
void let_go(State &state, Pid pid, os::Stopped stopped);

} // namespace ktrace::session
