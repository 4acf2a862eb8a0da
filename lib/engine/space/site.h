// Site: a patch at one address of one address space: the trap that is planted there, how a task steps over the
// instruction under it, and the attachments and internal breakpoints that the trap serves.
//
// The chain: a Spec is a SPEC as it was typed; a Probe is to run at all places that it means; a Location is one of
// these places, in a file; an Attachment is the probe at a location in one address space; its Site is the trap there.
// Probes at one address share the site; calls in flight and internal breakpoints use it, too.
//
// Invariants: while armed, the trap is planted and never lifted to step (another thread would run past it); the slot
// does not change; attachments run in the order in which they joined, internal breakpoints behind them.
#pragma once

#include <cstdint>
#include <vector>

#include "arch/host.h"
#include "base/addr.h"
#include "engine/space/event_kind.h"
#include "program/run/program.h"

namespace ktrace::os {
class Stopped;
}

namespace ktrace::engine {

class HitHandler;
struct Engine;
struct Process;
struct Site;
struct Task;

/// A user's probe at one location of one address space, as its site runs it. Owned above (trace::AttachedLocation);
/// lives until every site has removed it (calls/consumers.h).
struct Attachment {
    static constexpr std::uint32_t usual_maxactive = 4096; // where none is asked for
    enum class Kind : std::uint8_t {
        probe, // before the instruction, and after it where the program has a post moment
        entry, // a function's entry
        ret,   // entry and return
        watch, // has no site: debug registers (watch.h)
    };
    Kind kind = Kind::probe;
    bool on = true;         // off: hits of its site do not run it
    bool dismissed = false; // taken off its site for good; it is still there only for tasks in the middle of its hit
    std::uint32_t location = 0; // index of the LocationInfo
    const program::Program *program = nullptr;
    program::ProbeState *state = nullptr;
    HitHandler *handler = nullptr; // a plugin's: runs instead of the program, which is nullptr then
    program::Counters *counters = nullptr;
    std::uint32_t inside = 0;    // hits count only under calls that `encloses` of this number follows; 0: everywhere
    std::uint32_t encloses = 0;  // of a return probe of ktrace's own, which has no program; see `inside`
    std::uint32_t maxactive = 0; // return probes: most calls in flight
    std::uint32_t active = 0;
    std::uint32_t looks = 0;         // how many of those may be checked now for having ended
    VirtAddr function, function_end; // return probes: the code of the function; 0: not known
    enum class Exits : std::uint8_t { unknown, watched, unwatchable } exits = Exits::unknown;
};

/// The purpose of an internal breakpoint: a constant beside its function; known by its address.
struct InternalPurpose {
    /// Called at each hit, before the instruction, unless tracing is closing; nullptr: nothing is done. The task stands
    /// at the site's trap and steps over it afterwards.
    void (*at_hit)(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped) = nullptr;
    /// The event that goes up with the stopped task: its receiver lets it step over.
    EventKind raises = EventKind::none;
    bool serves_returns = false; // needed only while a return probe is on
};

/// A breakpoint of ktrace's own: in the loader, in unwinders, in resolvers. Never counted, never shown. Owned above, as
/// an Attachment is.
struct InternalBreakpoint {
    const InternalPurpose *purpose = nullptr;
    VirtAddr at;
    bool on = true;
};

struct Site {
    VirtAddr at;
    arch::Host::Plan plan;
    arch::Placement placed;
    VirtAddr slot;           // 0: none is needed (emulated)
    bool armed = false;      // the trap is planted
    std::uint64_t stops = 0; // at its trap, of all tasks
    bool left = false;       // by another ktrace of this build: its slot is filled, and the recovery page has its entry
    std::vector<Attachment *> attachments;
    std::vector<InternalBreakpoint *> internal;
    bool exit = false;             // a return instruction at which calls of its function are seen to end
    bool kept_for_returns = false; // a return address: the trap stays for the calls to come
    std::uint32_t returns = 0;     // calls in flight that return to here
    std::uint32_t doubtful = 0;    // a call instruction: calls from there that may have been left
    std::uint64_t last_return = 0; // when (by count of stops) the last such call was seen, to drop the oldest

    arch::Method method() const { return placed.size == 0 ? plan.method : placed.method; }
    /// Nothing was ever installed at it.
    bool is_only_planned() const { return !armed && attachments.empty() && internal.empty() && !slot; }
};

} // namespace ktrace::engine
