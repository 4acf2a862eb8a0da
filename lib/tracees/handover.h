// handover: how what a trace that is over but for sleepers has left mapped passes to another one, which needs no
// stopped task for that, and interrupts nobody.
//
// Invariant: a page is marked as at rest (arch/rescue.h) only while none of its process's tasks is in our memory, has a
// debug register of ours, or can come by a trap of ours.
#pragma once

#include <vector>

#include "tracees/detach.h"

namespace ktrace::tracees {

/// Marks the pages of all whom `leaving` awaits as at rest. False: some cannot be handed over.
bool put_to_rest(trace::Trace &trace, const Leaving &leaving);

/// Nobody is waited for any more by the calling thread, which is to end now. False: somebody has woken up just now, and
/// all are to be looked at again (Leaving::look_again).
bool hand_over(trace::Trace &trace, const Leaving &leaving);

/// Another ktrace lingers for the process, or did so until it was killed, and what it has left there can be taken over;
/// or nothing is left there, and it only lingers for others.
bool can_be_taken_over(Pid pid);

/// Has the ktrace that lingers for the process, if there is one, end that there; from before that on the guardian sees
/// to what is left. `ledger` may be nullptr. False: it does not obey. Asked for another of its processes at once, that
/// ktrace may be about to take this one back when this returns.
bool ask_for(recovery::Ledger *ledger, Pid pid);

/// The room that was left in the process, which is seized, is known; it stays at rest.
void find_room(engine::Process &process);
/// It is made this trace's own.
void take_over(trace::Trace &trace, engine::Process &process);

/// The thread of another ktrace that lingers for this process; 0: there is none.
pid_t lingering_for(Pid pid);

/// Has the thread that lingers for the process end that by a signal, with `pid` as its value; it has let go when this
/// returns. False: it does not obey.
bool end_waiting(pid_t lingering, Pid pid, int signal);

} // namespace ktrace::tracees
