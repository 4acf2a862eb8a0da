// goroutines: calls in flight on the stacks of goroutines. Go's runtime moves a stack that has become too small (or too
// large): runtime.copystack copies it, and what was at an address is then as far below the new top as it was below the
// old one. The calls move along in the table. The function that made it do so starts over then, and its
// hit is the same one, though another thread may make it: the goroutine may be preempted in between.
//
// Invariants: from the entry of copystack to its return the calls of the stack that moves are where no frame can be:
// the old memory may be another goroutine's before we see that return.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// At the first instruction of runtime.copystack: the calls leave the old stack.
extern const InternalPurpose leaves_stack;

/// At its return instruction: they arrive on the new one. Calls that were known there are over.
extern const InternalPurpose arrives_on_stack;

/// At the jump of a function, which has found its stack too small, back to its first instruction: no new call.
extern const InternalPurpose starts_over;

/// Such a jump to that function with this stack pointer, whose hit has not come yet; nullptr: there is none.
const Restart *find_restart(const AddressSpaceState &space, VirtAddr function, VirtAddr sp);

/// Its hit has come: it is forgotten. False: there is none.
bool take_restart(AddressSpaceState &space, VirtAddr function, VirtAddr sp);

/// Between the two: where the call's return address is, is not known.
bool is_moving(const Instance &call);

} // namespace ktrace::engine
