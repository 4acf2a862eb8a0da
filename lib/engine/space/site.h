// Site: a patch at one address of one address space: the trap that is planted there, how the instruction under it is
// got over, and which probes it runs.
//
// Invariants: while armed, the trap is planted and never lifted to step (another thread would run past it); the slot
// does not change; probes run in the order in which they were armed.
#pragma once

#include <cstdint>
#include <vector>

#include "arch/host.h"
#include "base/addr.h"
#include "program/run/program.h"

namespace ktrace::engine {

class HitHandler;

/// A probe at one location, as its site runs it. Owned above (session/); lives until every site has let go of it
/// (roster.h).
struct Attachment {
    enum class Kind : std::uint8_t {
        probe,         // before the instruction, and after it where the program has a post moment
        entry,         // a function's entry
        ret,           // entry and return
        unwinds,       // ours: an exception or longjmp starts here: frames may vanish without returning
        restarts,      // ours: a jump of a function back to its first instruction that is no new call
        stack_leaves,  // ours: Go's runtime begins to move a goroutine's stack
        stack_arrives, // ours: it has moved
        loader,        // ours: the dynamic loader has changed its list of modules
        ifunc,         // ours: a resolver of an indirect function is called, or has returned
        sets_action,   // ours: a function that may set the process's action for SIGTRAP is called
        sets_mask,     // ours: a function that may set the task's signal mask is called
        waking,        // ours: a system call has ended during which its task could not be stopped
        watch,         // has no site: debug registers (watch.h)
    };
    Kind kind = Kind::probe;
    bool on = true;         // off: its site's traps pass it by
    bool dismissed = false; // taken off its site for good; it is still there only for those who are in the middle of it
    std::uint32_t location = 0; // index of the LocationInfo
    const program::Program *program = nullptr;
    program::ProbeState *state = nullptr;
    HitHandler *handler = nullptr; // a plugin's: runs instead of the program, which is nullptr then
    program::Counters *counters = nullptr;
    std::uint32_t inside = 0;    // hits count only under calls that `encloses` of this number follows; 0: everywhere
    std::uint32_t encloses = 0;  // return probes of ours, without a program: their calls are what others are inside of
    std::uint32_t maxactive = 0; // return probes: most calls in flight
    std::uint32_t active = 0;
    std::uint32_t looks = 0;         // how many of those may be looked at now, whether they are over
    VirtAddr function, function_end; // return probes: the code of the function; 0: not known
    enum class Exits : std::uint8_t { unknown, watched, unwatchable } exits = Exits::unknown;
};

struct Site {
    VirtAddr at;
    arch::Host::Plan plan;
    arch::Placement placed;
    VirtAddr slot;      // 0: none is needed (emulated)
    bool armed = false; // the trap is planted
    bool left = false;  // by another ktrace of this build: its slot is filled, and the rescue page tells of it
    std::vector<Attachment *> probes;
    bool exit = false;             // a return instruction at which calls of its function are seen to end
    bool kept_for_returns = false; // a return address: the trap stays for the calls to come
    std::uint32_t returns = 0;     // calls in flight that return to here
    std::uint64_t last_return = 0; // when (by count of stops) the last such call was seen, to drop the oldest

    arch::Method method() const { return placed.size == 0 ? plan.method : placed.method; }
};

} // namespace ktrace::engine
