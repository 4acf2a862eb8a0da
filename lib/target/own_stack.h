// Own stack: how a task finds back from a system call that it makes for us while no page of ours is there: by code of
// the C library's, with a signal's frame below its stack.
//
// Invariant: a frame is only put where nothing but the thread's own stack can be. A goroutine's or a fiber's stack may
// end right below its stack pointer, where another one's memory begins.
#pragma once

#include <optional>

#include "os/tracee/way_back.h"
#include "target/address_space.h"

namespace ktrace::target {

/// The way back of this stopped task, whose memory is `space`. Nothing: its stack is not sure to be a thread's with
/// room below, or the process has no such code.
std::optional<os::WayBack> way_back_by_stack(AddressSpace &space, os::Stopped &stopped);

} // namespace ktrace::target
