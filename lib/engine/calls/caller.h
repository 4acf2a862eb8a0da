// caller: the code that a call comes from: the instruction that makes it, the address that it returns to, and the traps
// there.
//
// Invariants: a trap is planted in code that comes from a file, outside of restartable sequences, at an address that is
// known to be where an instruction begins.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// The function that the call instruction before the return address leads to: through PLT stubs, 0 where it is
/// indirect.
VirtAddr direct_target(AddressSpaceState &space, VirtAddr return_address);

/// The call instruction that ends at the return address; 0: none is known to be there. A function is decoded from its
/// first instruction on for it, since bytes can be two calls at once when they are read backwards.
VirtAddr call_instruction(Process &process, VirtAddr return_address);

/// A trap there would break off a restartable sequence each time.
bool is_in_sequence(Process &process, const Site &site);

/// The armed site at an address of a caller's, without a reason to stay so yet; nullptr where none can be had.
Site *trap_caller(Engine &engine, Process &process, VirtAddr at, os::Stopped &stopped);

} // namespace ktrace::engine
