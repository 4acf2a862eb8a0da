#include "session/follow.h"

#include <algorithm>

#include <linux/capability.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "os/asleep.h"
#include "session/rearm.h"
#include "session/rights.h"
#include "session/seize.h"
#include "session/tripwires.h"
#include "trap/interruption.h"
#include "trap/rest.h"
#include "trap/restore.h"
#include "trap/watch.h"

namespace ktrace::session {

using trap::Ground;
using trap::Site;
using trap::Task;
using trap::Traced;

namespace {

/// A task of the process that has its memory still: the leader may have ended before the others.
std::optional<Tid> one_with_memory(Pid process) {
    const Tid leader{process.value};
    if (os::has_memory(leader)) return leader;
    for (Tid tid : os::read_tasks(process))
        if (os::has_memory(tid)) return tid;
    return std::nullopt;
}

bool has_same_memory(Tid task, Pid other) { return ::syscall(SYS_kcmp, task.value, other.value, KCMP_VM, 0, 0) == 0; }

bool shares_memory(Pid process, Pid other) {
    while (auto task = one_with_memory(process)) {
        const bool same = has_same_memory(*task, other);
        if (os::has_memory(*task)) return same; // so it had when they were compared
    }
    return false;
}

Traced &make_process(State &state, Pid pid) {
    auto &slot = state.world.processes[pid.value];
    slot = std::make_unique<Traced>();
    slot->process.pid = pid;
    slot->process.comm = os::read_comm(pid, Tid{pid.value});
    return *slot;
}

Task &make_task(State &state, Pid pid, Tid tid) {
    Task &task = state.world.tasks[tid.value];
    task.tid = tid;
    task.pid = pid;
    state.world.waiter.watch(tid);
    return task;
}

/// A process in the memory of another one.
Traced &make_borrower(State &state, const Traced &owner, Pid pid) {
    Traced &traced = make_process(state, pid);
    traced.ground = owner.ground;
    traced.process.space = owner.process.space;
    traced.process.modules = owner.process.modules;
    traced.process.maps = owner.process.maps;
    traced.process.syscall_instruction = owner.process.syscall_instruction;
    traced.borrowed = true;
    traced.silent = !state.config.follow || owner.silent;
    // The owner may end, or call exec, before it.
    if (state.world.ledger && owner.ground->rescue_tried)
        state.world.ledger->cover(pid, owner.ground->rescue.address());
    return traced;
}

/// True where its exec has to be seen before it is made.
bool stays_for_rights(const Traced &borrower) { return borrower.silent && !os::has_capability(CAP_SYS_PTRACE); }

void forget(State &state, Pid pid) {
    std::erase_if(state.world.tasks, [&](const auto &entry) {
        if (entry.second.pid == pid) state.world.waiter.forget(Tid{entry.first});
        return entry.second.pid == pid;
    });
    leave_ledger(state, pid);
    state.world.processes.erase(pid.value);
}

/// Its tasks stop once, and at their system calls from then on; who sleeps in a call that must not be interrupted does
/// when that ends, or with the next stop that it has.
void stop_at_calls(State &state, const Traced &sharer) {
    for (auto &[tid, task] : state.world.tasks) {
        if (task.pid != sharer.process.pid) continue;
        task.until_exec = true;
        if (os::interrupted(task.pid, task.tid) == os::Interrupted::begins_anew)
            set_tripwire(*sharer.ground, task);
        else
            trap::interrupt_asleep(state.world, task.tid);
    }
}

/// It has a memory of its own since it was looked at. An exec that is still to be told is told.
void part_with_sharer(State &state, Pid pid) {
    os::interrupt(Tid{pid.value});
    auto stop = state.world.waiter.next_of(Tid{pid.value});
    if (!stop || stop->kind == os::Stop::Kind::exec || stop->kind == os::Stop::Kind::exited ||
        stop->kind == os::Stop::Kind::killed) {
        if (stop) state.world.waiter.put_back(*stop);
        return;
    }
    const int signal = stop->kind == os::Stop::Kind::signal ? stop->signal : 0;
    os::Stopped stopped(state.world.waiter, *stop);
    if (stop->kind == os::Stop::Kind::started) trap::undo_interruption(stopped);
    std::move(stopped).resume(os::Resume::detach, signal);
    forget(state, pid);
}

/// The child's action for SIGTRAP becomes what its parent's was, and its copy of the rescue page goes.
Status unmap_rescue(Ground &child, const target::Process &process, State &state, os::Stopped &stopped) {
    if (!child.rescue.mapped()) return {};
    rescue::Hands hands{*child.space, *process.syscall_instruction, state.world.waiter, stopped};
    auto restored = child.rescue.restore_action(hands);
    if (!restored) return tl::make_unexpected(restored.error());
    return *restored ? child.rescue.unmap(hands) : Status();
}

/// A fork's copy of our traps comes out again, and our pages go.
void clean(State &state, Traced &parent, Pid child, os::Stopped &stopped) {
    // The kernel gives it none of the breakpoints, but a copy of the register that says which are on.
    if (parent.ground->watch_generation != 0) arch::HostNative::set_watches(stopped.tid(), {});
    auto copy = parent.ground->space->copy_for(child);
    if (!copy) return;
    for (VirtAddr at : (*copy)->plants()) (*copy)->unplant(at);
    Ground ground;
    ground.space = std::move(*copy);
    for (const trap::Arena &arena : parent.ground->slots.arenas()) ground.slots.add(arena);
    ground.rescue = parent.ground->rescue;
    trap::rewrite_wiped(ground, child);
    static_cast<void>(trap::forget_lost(ground, child)); // whoever has made it: nothing but ours is unmapped
    target::Process process = parent.process;
    process.pid = child;
    auto unmapped = trap::unmap_arenas(ground, process, state.world.waiter, stopped);
    if (unmapped) unmapped = unmap_rescue(ground, process, state, stopped);
    if (!unmapped) log::write("session", log::Level::debug, "child keeps our pages: " + unmapped.error().message);
}

/// The site of a fork's child: armed where the child's memory holds the trap, whatever became of it in the parent since
/// the fork.
std::unique_ptr<Site> copy_site(Ground &ground, const Site &from) {
    auto site = std::make_unique<Site>(from);
    site->returns = 0;
    site->armed = ground.space->planted(from.at);
    if (site->armed && !from.armed) {
        ground.space->unplant(from.at);
        site->armed = false;
    }
    return site;
}

/// A ground for the child with the same memory of ours, without sites.
std::shared_ptr<Ground> copy_ground(const Traced &parent, std::shared_ptr<target::AddressSpace> space) {
    auto ground = std::make_shared<Ground>();
    ground->space = std::move(space);
    ground->slots = parent.ground->slots;
    ground->rescue = parent.ground->rescue;
    ground->rescue_tried = parent.ground->rescue_tried;
    ground->owes_room = parent.ground->owes_room;
    return ground;
}

/// The same sites in the child, without the calls that are in flight in its parent. A trap that its parent has got
/// since the fork is planted.
void copy_sites(State &state, const Traced &parent, const std::shared_ptr<Ground> &ground) {
    trap::Ground &from = *parent.ground;
    Arming &copied = state.armings[ground.get()];
    std::unordered_map<const trap::Armed *, trap::Armed *> twins;
    const Arming &arming = state.armings[&from];
    for (const auto &location : arming.locations) {
        copied.locations.push_back(std::make_unique<ArmedLocation>(*location));
        copied.locations.back()->armed.active = 0;
        twins[&location->armed] = &copied.locations.back()->armed;
    }
    for (const auto &internal : arming.internal) {
        copied.internal.push_back(std::make_unique<InternalSite>(*internal));
        twins[&internal->armed] = &copied.internal.back()->armed;
    }
    copied.unwinders = arming.unwinders;
    copied.ifuncs = arming.ifuncs;
    for (const auto &[at, site] : from.sites) {
        auto twin = copy_site(*ground, *site);
        std::erase_if(twin->probes, [](const trap::Armed *armed) { return armed->dismissed; });
        for (trap::Armed *&armed : twin->probes) armed = twins.at(armed);
        twin->kept_for_returns = twin->kept_for_returns && twin->armed;
        if (site->armed && !twin->armed && !twin->probes.empty()) static_cast<void>(trap::arm(*ground, *twin));
        if (twin->slot) ground->by_slot[twin->slot] = twin.get();
        if (twin->kept_for_returns) ground->return_sites++;
        ground->sites.emplace(at, std::move(twin));
    }
    for (const trap::Watchpoint &watch : from.watches)
        trap::add_watch(state.world, *ground, {0, twins.at(watch.armed), watch.at, watch.in_thread, watch.parts, {}});
    ground->return_address_ok = from.return_address_ok;
    ground->return_probes = from.return_probes;
    ground->timed_probes = from.timed_probes;
}

/// False: it is not followed, and clean. What traps lead to cannot be had in it.
bool can_be_followed(State &state, Traced &parent, Pid child, target::AddressSpace &space, os::Stopped &stopped) {
    if (!parent.process.syscall_instruction) return true; // no memory of ours
    auto complete =
        trap::complete_copy(*parent.ground, {space, *parent.process.syscall_instruction, state.world.waiter, stopped});
    if (complete) return true;
    clean(state, parent, child, stopped);
    if (complete.error().kind != Error::Kind::gone)
        tell_once(state, "children of process " + std::to_string(parent.process.pid.value) +
                             " lack memory of ktrace's, which it keeps from them (madvise(2)) or has replaced; those "
                             "that cannot be given it are not followed: " +
                             complete.error().message);
    return false;
}

/// Whose event tells of the child already.
Traced *who_tells_of(State &state, Pid child) {
    const auto message = static_cast<unsigned long>(child.value);
    for (const auto &[tid, task] : state.world.tasks)
        if (state.world.waiter.has_news_of(task.tid) && os::event_message(task.tid) == message)
            return state.world.process_of(task);
    return nullptr;
}

/// Our page in the process is in the child, too.
bool may_be_copied(const Traced &traced, Pid child) {
    auto space = target::AddressSpace::open(child);
    return space && traced.ground->rescue.is_there(**space);
}

} // namespace

Traced *maker_of(State &state, Pid child, Pid parent) {
    auto known = state.world.processes.find(parent.value);
    Traced *by_status = known == state.world.processes.end() ? nullptr : known->second.get();
    if (by_status && shares_memory(parent, child)) return by_status;
    for (auto &[pid, traced] : state.world.processes)
        if (shares_memory(Pid{pid}, child)) return traced.get();
    if (Traced *teller = who_tells_of(state, child)) return teller;
    if (by_status && may_be_copied(*by_status, child)) return by_status;
    for (auto &[pid, traced] : state.world.processes)
        if (may_be_copied(*traced, child)) return traced.get();
    return by_status;
}

void let_go(State &state, Pid pid, os::Stopped stopped) {
    Tid tid = stopped.tid();
    std::move(stopped).resume(os::Resume::detach);
    state.world.waiter.forget(tid);
    state.world.tasks.erase(tid.value);
    leave_ledger(state, pid);
    state.world.processes.erase(pid.value);
}

void leave_ledger(State &state, Pid pid) {
    rescue::Ledger *ledger = state.world.ledger;
    auto leaving = state.world.processes.find(pid.value);
    if (!ledger || leaving == state.world.processes.end()) return;
    for (const auto &[other, traced] : state.world.processes) {
        if (other == pid.value || traced->ground != leaving->second->ground) continue;
        ledger->hand_over_untold(pid, Pid{other});
        break;
    }
    ledger->drop(pid);
}

Status adopt_sharers(State &state, const Traced &owner) {
    for (bool found_new = true; found_new;) {
        found_new = false;
        const auto task = one_with_memory(owner.process.pid);
        if (!task) return {};
        for (Pid other : os::read_processes()) {
            if (state.world.processes.contains(other.value) || !has_same_memory(*task, other)) continue;
            if (!os::has_memory(*task)) break; // those that have none are all the same
            found_new = true;
            Traced &sharer = make_borrower(state, owner, other);
            Status seized = seize_all(state, sharer);
            if (!seized) forget(state, other);
            if (!seized && seized.error().kind != Error::Kind::gone) return seized;
            if (seized && !shares_memory(owner.process.pid, other)) {
                part_with_sharer(state, other);
            } else if (seized && stays_for_rights(sharer)) {
                stop_at_calls(state, sharer);
            }
        }
        found_new = found_new || !os::has_memory(*task); // then it has told of some that they were none
    }
    return {};
}

void before_exec(State &state, trap::Event event) {
    Task &task = state.world.tasks.at(event.tid.value);
    Traced *traced = state.world.process_of(task);
    auto entry = os::syscall_entry(event.tid);
    if (traced && entry && gains_rights(event.pid, *entry, *traced->ground->space))
        let_go(state, event.pid, std::move(*event.stopped));
    else
        trap::continue_task(state.world, task, std::move(*event.stopped));
}

void adopt_child(State &state, Traced *parent, os::Stopped stopped) {
    Tid tid = stopped.tid();
    Pid child{tid.value};
    if (!parent) {
        // Its parent has ended meanwhile; whatever it has of our traps is known by the grounds that are left.
        for (auto &[pid, traced] : state.world.processes) clean(state, *traced, child, stopped);
        let_go(state, child, std::move(stopped));
        return;
    }
    if (shares_memory(parent->process.pid, child)) {
        const Traced &traced = make_borrower(state, *parent, child);
        Task &task = make_task(state, child, tid);
        task.until_exec = stays_for_rights(traced);
        trap::continue_task(state.world, task, std::move(stopped));
        return;
    }
    if (!state.config.follow || parent->silent || state.world.closing) {
        clean(state, *parent, child, stopped);
        let_go(state, child, std::move(stopped));
        return;
    }
    auto copy = parent->ground->space->copy_for(child);
    if (!copy || !can_be_followed(state, *parent, child, **copy, stopped)) {
        let_go(state, child, std::move(stopped));
        return;
    }
    Traced &traced = make_process(state, child);
    traced.process.modules = parent->process.modules;
    traced.process.maps = parent->process.maps;
    traced.process.syscall_instruction = parent->process.syscall_instruction;
    traced.process.space = std::move(*copy);
    traced.ground = copy_ground(*parent, traced.process.space);
    trap::restore_at_birth(state.world, traced, stopped); // killed from here on, ktrace leaves traps that are served
    copy_sites(state, *parent, traced.ground);
    if (state.world.ledger && traced.ground->rescue_tried)
        state.world.ledger->cover(child, traced.ground->rescue.address());
    for (VirtAddr at : traced.ground->space->plants())
        trap::tell_of_untold(state.world.ledger, child, *traced.ground, at);
    Task &task = make_task(state, child, tid);
    std::optional<os::Stopped> at_birth(std::move(stopped));
    if (traced.ground->owes_room) pay_owed_room(state, traced, at_birth);
    if (at_birth) trap::continue_task(state.world, task, std::move(*at_birth));
}

} // namespace ktrace::session
