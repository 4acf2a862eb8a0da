// Jump memory: what jumps need of the process: mappings for landings and stubs, and shared memory for counters.
#pragma once

#include "engine/space/address_space_state.h"

namespace ktrace::engine {

/// Maps code of ktrace's at a place, by a system call of the stopped task, and lists it in the recovery page. False:
/// something else is there. Errors: refused (mmap is forbidden), gone.
Result<bool> map_jump_code(AddressSpaceState &space, const target::Process &process, os::Waiter &waiter,
                           os::Stopped &stopped, VirtAddr at, std::size_t size);

/// Memory that a process shares with ktrace.
struct SharedMemory {
    VirtAddr at;
    std::size_t size = 0; // bytes
    VirtAddr name;        // memory of ktrace's in the process that holds recovery::counters_name, with its zero
};

/// Maps it. Its file is made in the process, so that it counts there as nothing of ktrace's, and is closed again; it
/// keeps its size. No other task of the process runs meanwhile. No file: something else is there. Errors: refused,
/// gone.
Result<Fd> map_shared(AddressSpaceState &space, const target::Process &process, os::Waiter &waiter,
                      os::Stopped &stopped, const SharedMemory &memory);

} // namespace ktrace::engine
