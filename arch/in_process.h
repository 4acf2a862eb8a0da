// In process: what code asks of the processor that it runs on, without a system call: the agent (lib/agent), which runs
// in the traced process, and ktrace, which compares.
#pragma once

#include <cstdint>

#include "arch/host.h"

namespace ktrace::arch {

/// The thread pointer; in a thread that has none it may fault.
std::uint64_t own_thread_pointer();

/// Of the counter that all processors share and that runs on in any state of theirs.
std::uint64_t processor_time();

/// Keeps the thread's floating point registers in `into`, which lies at a multiple of 64.
void keep_floats(Host::FpRegisters &into);
/// Their parts beyond FpRegisters, where the processor has such, stay as they are as well, up to `put_floats_back`.
bool keeps_all_floats();
/// Makes their modes those with which a program begins, so that nothing traps.
void use_usual_modes();
/// Puts back what was kept. As often as one likes.
void put_floats_back(const Host::FpRegisters &from);

/// Where a call's return address lies on the stack, and what lies there.
struct CallPlace {
    std::uint64_t at = 0, return_address = 0;
};

/// Of the call whose function's first instruction is about to run.
CallPlace place_of_begun(const Host::Registers &registers);

/// Of the call that has returned to where the thread is now.
CallPlace place_of_returned(const Host::Registers &registers);

} // namespace ktrace::arch
