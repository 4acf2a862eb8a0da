// goroutines: calls in flight on the stacks of goroutines. Go's runtime moves a stack that has become too small (or too
// large): runtime.copystack copies it, and each frame keeps its distance from the top. The calls move along in the
// table. The function that has found the stack too small then starts over. That is the same hit, even in another
// thread: the goroutine may be preempted in between.
//
// Invariants: from the entry of copystack to its return the calls of the stack that moves have addresses that no frame
// can have: the old memory may be another goroutine's before that return is seen.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// At the first instruction of runtime.copystack: the calls leave the old stack.
extern const InternalPurpose leaves_stack;

/// At its return instruction: they arrive on the new stack. Older calls in that memory have ended.
extern const InternalPurpose arrives_on_stack;

/// At the jump of a function, which has found its stack too small, back to its first instruction: no new call.
extern const InternalPurpose starts_over;

/// Such a jump to that function with this stack pointer, whose hit is still to come; nullptr: there is none.
const Restart *find_restart(const AddressSpaceState &space, VirtAddr function, VirtAddr sp);

/// Its hit has come: it is forgotten. False: there is none.
bool take_restart(AddressSpaceState &space, VirtAddr function, VirtAddr sp);

/// True between the two: the place of the call's return address is not known.
bool is_moving(const Instance &call);

} // namespace ktrace::engine
