// Guard: runs the plugin's functions so that the host outlives them: faults, exceptions, abort() and endless loops end
// the function, not the host.
//
// Invariants: nothing of the host's own is changed between the start of a guarded function and its end but by the API
// functions that it calls, which may be left in the middle only where they ask ktrace for something or touch the
// plugin's memory.
#pragma once

#include <cstdint>

#include "plugin/wire.h"

struct kprobe;

namespace ktrace::plugin::host {

/// Handles the signals of faults, and ktrace's that a function is late, from now on.
void install_guard();

/// The outcome of a guarded function.
struct Left {
    Ended ended = Ended::returned;
    long result = 0;
    bool by_return = false; // a jprobe's entry that did not end with jprobe_return()
};

/// Runs `function(argument)`. `probe`: whose fault_handler is asked when it faults, or nullptr. Where it did not
/// return, Wire::text says why, Wire::address the address that it faulted at.
Left guarded(long (*function)(void *), void *argument, kprobe *probe);

/// A guarded function has called jprobe_return().
[[noreturn]] void leave_entry();
/// A return to `address` (of the target's) ends the guarded function as if by jprobe_return(); 0: none does.
void expect_return_to(std::uint64_t address);
/// A guarded function ends for a reason of the API's.
[[noreturn]] void leave_aborted(const char *why);

/// Ends the guarded function where ktrace has said that it is late, at a moment when that could not be done.
void leave_if_late();

/// While one is alive, a late function is not ended: something of the host's own is being changed. Call leave_if_late
/// behind it.
class Critical {
  public:
    Critical();
    ~Critical();
    Critical(const Critical &) = delete;
};

/// Copies memory, some of which may be the target's; returns the bytes copied before a fault.
std::size_t copy_guarded(void *to, const void *from, std::size_t size);
/// The length of a text up to its NUL, `most` at most; -1: a fault comes first.
long length_guarded(const char *text, std::size_t most);

} // namespace ktrace::plugin::host
