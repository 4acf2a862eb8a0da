#include "engine/hit/gather.h"

#include <algorithm>
#include <utility>

#include "base/signals.h"
#include "engine/calls/repeated_hit.h"
#include "engine/transparent/sigtrap/disposition.h"
#include "os/proc/procfs.h"
#include "os/tracee/syscall_user_dispatch.h"

namespace ktrace::engine {

using arch::Host;
using os::Stop;
using os::Stopped;

namespace {

/// A trap instruction of the program's own at `at`?
bool own_trap_at(Process &process, VirtAddr at) {
    auto trap = Host::trap_bytes();
    std::byte code[8];
    std::size_t got = process.space->memory->read(at, std::span(code).first(trap.size()));
    return got == trap.size() && std::equal(trap.begin(), trap.end(), code);
}

/// True where the kernel raised it: int3 and steps raise SIGTRAP with a positive code; kill and tgkill have one that is
/// not.
bool raised_by_kernel(Tid tid) {
    auto info = os::signal_info(tid);
    return info && info->si_code > 0;
}

/// A single step's end, a hardware breakpoint's, or an event's of perf_event_open(2), which the program has set itself:
/// the pc is where the program goes on, and the bytes before it have nothing to do with it.
bool comes_behind(int code) {
    constexpr int trap_perf = 6; // TRAP_PERF: not in every libc's headers
    return code == TRAP_TRACE || code == TRAP_HWBKPT || code == trap_perf;
}

/// Of those that stop and continue a process, where they do no more than that.
bool controls_job(const Stop &stop) {
    constexpr std::uint64_t all = stop_signals | signal_bit(SIGCONT);
    if ((signal_bit(stop.signal) & all) == 0) return false;
    auto status = os::read_status(stop.tid.value);
    return status && (status->caught & signal_bit(stop.signal)) == 0;
}

/// True for a probed system call of a thread with syscall user dispatch, which would judge the copy by its address
/// (PR_SET_SYSCALL_USER_DISPATCH). Such probes are refused; here that was not known in time.
bool is_dispatched_call(const Site &site, Tid tid) {
    if (site.method() != arch::Method::syscall) return false;
    const auto dispatch = os::dispatch_of(tid);
    return dispatch && dispatch->mode != 0;
}

/// The facts of a hit at a site.
void gather_hit(Process &process, Task &task, const Site &site, Stopped &stopped, Facts &f) {
    f.silent = process.silent;
    f.repeated = is_repeated_hit(*process.space, task, site, stopped);
    f.dispatched = is_dispatched_call(site, task.tid);
}

/// Where the pc is in a slot, if it is in one.
void gather_slot(AddressSpaceState &space, Stopped &stopped, Facts &f) {
    const VirtAddr pc = stopped.pc();
    Site *in = space.slots.contains(pc) ? space.site_of_pc_in_slot(pc) : nullptr;
    if (!in) return;
    f.slot = Host::slot_position(in->placed, in->slot, pc);
    f.repeats = in->plan.repeats;
}

/// The debug registers that have fired, by a stop behind the access, or before it.
void gather_watches(const Task &task, Seen &seen) {
    Facts &f = seen.facts;
    if (task.watches.is_off) {
        const auto info = os::signal_info(task.tid);
        f.watched = info && info->si_code == TRAP_TRACE;
        if (f.watched) seen.fired = task.watches.awaited;
        return;
    }
    seen.fired = arch::HostNative::watch_hits(task.tid);
    f.watched = seen.fired != 0;
    const bool is_access = (seen.fired & ~task.watches.executing) != 0;
    f.before_access = is_access && arch::HostNative::watches_stop_before;
}

/// The stop of a SIGTRAP: a trap's, a step's, a debug register's, or one that a process has sent.
void gather_trap(Engine &engine, Process &process, Task &task, Stopped &stopped, Seen &seen) {
    Facts &f = seen.facts;
    AddressSpaceState &space = *process.space;
    const Tid tid = task.tid;
    // The bits that a killed ktrace has left in DR6 say nothing of this stop.
    if (!task.watches.registers.empty() && !engine.mending) gather_watches(task, seen);
    const bool steps = task.step.over == Over::stepping;
    if (task.wants_registers || steps) stopped.registers();
    seen.trap_at = Host::trap_address(stopped.pc());
    seen.site = space.site_at(seen.trap_at);
    f.site = seen.site && seen.site->armed && !steps;
    // Behind a longer instruction's first byte the pc is nowhere but at a trap, and a task that stands elsewhere than
    // where its step began has made it. Behind a whole instruction, and before it where a trap leaves the pc there, a
    // process may have sent SIGTRAP, which only a process that is prepared for it survives.
    const bool is_inside = seen.trap_at != stopped.pc() && f.site && seen.site->plan.length > 1;
    bool is_at_trap = is_inside || (steps && stopped.pc() != task.step.from);
    const bool may_be_sent = (f.site || steps) && process.uses_sigtrap;
    const bool unmistakable = !may_be_sent && (is_at_trap || f.site);
    const auto info = unmistakable ? std::nullopt : os::signal_info(tid);
    const int code = info ? info->si_code : 0;
    const bool was_sent = info && code <= 0;
    is_at_trap = is_at_trap || (was_sent && f.site && is_forced(process, task));
    // A task has one SIGTRAP pending at most: the trap's is dropped where one that was sent waits.
    if (was_sent && (is_at_trap || f.watched)) seen.sent = info;
    f.from_kernel = f.watched || unmistakable || is_at_trap || code > 0;
    f.behind = comes_behind(code);
    f.own_step = code == TRAP_TRACE && !steps && !task.watches.is_off;
    if (f.site && f.from_kernel && !f.behind) {
        gather_hit(process, task, *seen.site, stopped, f);
        return;
    }
    f.leftover = engine.mending && (code == TRAP_TRACE || code == TRAP_HWBKPT);
    f.was_ours = space.memory->ever_planted(seen.trap_at) && !own_trap_at(process, seen.trap_at);
    gather_slot(space, stopped, f);
}

} // namespace

Seen gather(Engine &engine, Process &process, Task &task, Stopped &stopped) {
    const Stop &stop = stopped.stop();
    Seen seen;
    Facts &f = seen.facts;
    f.kind = stop.kind;
    f.signal = stop.signal;
    f.over = task.step.over;
    f.until_exec = task.until_exec;
    f.follows = task.repeat.follows != 0;
    f.rang = std::exchange(task.has_rung, false);
    if (stop.kind != Stop::Kind::signal || f.rang) return seen;
    if (stop.signal == SIGTRAP) {
        gather_trap(engine, process, task, stopped, seen);
        return seen;
    }
    f.from_kernel = is_synchronous(stop.signal) && raised_by_kernel(stop.tid);
    f.controls_job = controls_job(stop);
    gather_slot(*process.space, stopped, f);
    return seen;
}

} // namespace ktrace::engine
