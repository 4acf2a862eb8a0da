// waking: what has to be done with a task while it is stopped, but cannot be while it sleeps in a system call whose
// time-out would begin anew, is done when the call ends: at a tripwire or a trap right behind it.
#pragma once

#include "engine/hit/dispatch.h"
#include "tracees/stop.h"

namespace ktrace::tracees {

/// The task sleeps in such a call: it will stop right behind it, where its debug registers are set. False: it does not,
/// or can have neither a tripwire nor a trap there: interrupt it.
bool watch_waking(trace::Trace &trace, engine::Process &process, Tid tid);

/// A task stands behind its call; when nobody is left who is waited for so, the traps come out.
void on_woken(trace::Trace &trace, engine::Event event);

/// Tripwires behind the calls of the sleepers of an address space that is being left, of those with debug registers
/// where there are such; for who can have none a trap, without an Attachment of its own, at which everybody stops.
/// These come out with all others (AddressSpace::plants). Who is `held` needs none.
enum class Trapped : std::uint8_t {
    already, // all were there
    now,     // some were not, or somebody has woken up: who sleeps where by now is to be looked at again
    never,   // there is no place for one
};
Trapped trap_sleepers(trace::Trace &trace, const std::shared_ptr<engine::AddressSpaceState> &space,
                      const HeldTasks &held);

/// For how long those may be waited for, at the end of a trace, who wake up by themselves: some seconds in all, and not
/// after another SIGINT or SIGTERM. Who waits for longer than a moment is told for what.
class WakingTime {
  public:
    explicit WakingTime(trace::Trace &trace) : trace_{trace} {}
    /// It begins when this is asked for the first time.
    bool is_left();

  private:
    void tell();

    trace::Trace &trace_;
    std::uint64_t began_ns_ = 0; // 0: not yet
    bool told_ = false;
};

} // namespace ktrace::tracees
