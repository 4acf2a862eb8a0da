// inside: whether a stopped task is under a call of a given function. The calls of that function are followed as those
// of return probes are (returns.h), so that tail calls count as they stand in the source.
//
// Invariants: where a task has only called and returned, its calls in flight decide; after an exception, a longjmp or a
// switch of stacks, the stack is searched for the frames of these calls; calls that began before ktrace attached are
// found on the stack at the task's first hit.
#pragma once

#include <cstdint>

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// A call of an enclosing function begins.
void enter_enclosing(Engine &engine, Process &process, Task &task, Attachment &attachment, Site &site,
                     os::Stopped &stopped);

/// True where the task, which is at `pc`, is under a call that the probe of this number follows.
bool is_inside(Engine &engine, Process &process, Task &task, std::uint32_t number, VirtAddr pc, os::Stopped &stopped);

/// For the agent (Thread::enclosed): the bit of an enclosing probe, which others may share.
std::uint64_t enclosed_by(std::uint32_t number);
/// The bits of all whose calls the task may be under.
std::uint64_t enclosed_by(const AddressSpaceState &space, const Task &task);

} // namespace ktrace::engine
