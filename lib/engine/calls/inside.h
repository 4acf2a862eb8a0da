// inside: is a stopped task under a call of a given function? The calls of that function are followed as those of
// return probes are (returns.h), so that tail calls count as the source has them.
//
// Invariants: where nothing but calls and returns has happened since a call began, the books tell; after an exception,
// a longjmp or a switch of stacks the stack itself is asked, for the frames of the calls in the books; what began
// before ktrace came is found on the stack at the task's first hit.
#pragma once

#include <cstdint>

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// A call of an enclosing function begins.
void enter_enclosing(Engine &engine, Process &process, Task &task, Attachment &attachment, Site &site,
                     os::Stopped &stopped);

/// Is the task, which is at `pc`, under a call that the probe of this number follows?
bool is_inside(Engine &engine, Process &process, Task &task, std::uint32_t number, VirtAddr pc, os::Stopped &stopped);

} // namespace ktrace::engine
