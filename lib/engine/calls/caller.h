// caller: the code that a call comes from: its call instruction, its return address, and the traps there.
//
// Invariants: a trap is planted in code that comes from a file, outside of restartable sequences, at an address where
// an instruction is known to begin.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// The function that the call instruction before the return address leads to: through PLT stubs, 0 where it is
/// indirect.
VirtAddr direct_target(AddressSpaceState &space, VirtAddr return_address);

/// The call instruction that ends at the return address; 0: none is known to be there. The function is decoded from its
/// first instruction on, since bytes that are read backwards may be two different calls.
VirtAddr call_instruction(Process &process, VirtAddr return_address);

/// True where the site is in a restartable sequence, which a trap would abort each time.
bool is_in_sequence(Process &process, const Site &site);

/// The armed site at an address of a caller's, which nothing keeps armed yet; nullptr where none can be had.
Site *trap_caller(Engine &engine, Process &process, VirtAddr at, os::Stopped &stopped);

} // namespace ktrace::engine
