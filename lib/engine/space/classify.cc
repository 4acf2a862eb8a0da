#include "engine/space/classify.h"

#include "base/signals.h"

#include <csignal>

namespace ktrace::engine {

using arch::SlotPosition;
using Kind = os::Stop::Kind;

bool is_synchronous(int signal) { return signal > 0 && (signal_bit(signal) & synchronous_signals) != 0; }

namespace {

Verdict classify_hit(const Facts &f) {
    if (f.dispatched) return Verdict::hit_dispatched;
    return f.silent || f.repeated ? Verdict::hit_again : Verdict::hit;
}

Verdict classify_trap(const Facts &f) {
    if (f.before_access) return Verdict::before_access;
    if (f.over == Over::stepping) return Verdict::step_done;
    if (f.watched && !f.own_step) return Verdict::watched;
    if (f.site && !f.behind) return classify_hit(f);
    if (f.leftover) return Verdict::go_on;
    if (f.was_ours && !f.behind) return Verdict::late_trap;
    if (f.slot == SlotPosition::after) return Verdict::deliver_behind;
    if (f.slot == SlotPosition::inside) return Verdict::hold; // the program's own step, of the whole instruction
    return f.slot == SlotPosition::elsewhere ? Verdict::deliver : Verdict::deliver_fault;
}

Verdict classify_signal(const Facts &f) {
    bool fault = f.from_kernel && is_synchronous(f.signal);
    // No handler sees where the task is. SIGCONT could not take back a stop that is held; sent again, it would take
    // back one that was asked for after it.
    if (f.controls_job && (f.over == Over::stepping || f.slot != SlotPosition::after)) return Verdict::deliver;
    if (f.over == Over::stepping) return fault ? Verdict::step_fault : Verdict::hold;
    switch (f.slot) {
    case SlotPosition::elsewhere: return Verdict::deliver;
    case SlotPosition::after: return Verdict::deliver_behind;
    case SlotPosition::at_start:
        if (fault) return Verdict::deliver_fault;
        // On the way to a system call, or in a rep: what was done shows in the registers, and nothing is lost.
        if (f.over == Over::to_syscall || f.repeats) return Verdict::deliver_retry;
        return Verdict::hold;
    case SlotPosition::inside: return fault ? Verdict::deliver_fault : Verdict::hold;
    }
    return Verdict::deliver;
}

} // namespace

os::Resume way_on(bool steps, Over over, bool at_calls, bool trap_pending) {
    if (steps) return trap_pending ? os::Resume::run : os::Resume::step;
    return over != Over::none || at_calls ? os::Resume::syscall : os::Resume::run;
}

Verdict classify(const Facts &f) {
    if (f.rang) return Verdict::rang;
    switch (f.kind) {
    case Kind::signal:
        if (f.signal == SIGTRAP && f.from_kernel) return classify_trap(f);
        return classify_signal(f);
    case Kind::syscall:
        if (f.over == Over::to_syscall) return Verdict::syscall_entered;
        if (f.over == Over::in_syscall) return Verdict::syscall_left;
        if (f.until_exec) return Verdict::own_syscall;
        return f.follows ? Verdict::handler_syscall : Verdict::go_on;
    case Kind::group: return Verdict::group_stop;
    case Kind::started: return Verdict::go_on;
    case Kind::clone: return Verdict::new_task;
    case Kind::fork:
    case Kind::vfork: return Verdict::new_process;
    case Kind::exec: return Verdict::exec;
    case Kind::exited:
    case Kind::killed: return Verdict::ended;
    }
    return Verdict::go_on;
}

} // namespace ktrace::engine
