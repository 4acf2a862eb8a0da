// In process: what code asks of the processor that it runs on, without a system call: the agent (lib/agent), which runs
// in the traced process, and ktrace, which compares.
#pragma once

#include <cstdint>

namespace ktrace::arch {

/// The thread pointer; in a thread that has none it may fault.
std::uint64_t own_thread_pointer();

/// Of the counter that all processors share and that runs on in any state of theirs.
std::uint64_t processor_time();

} // namespace ktrace::arch
