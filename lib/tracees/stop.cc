// How a task is moved out of its slot: it is interrupted, and its other stops before that are served. Where its pc is
// in the slot of an instruction that has not begun, or is done, it is set to the program's own address; else the task
// runs on to there. All are asked to stop before one is waited for: each of many that share a processor stops when its
// turn comes.
//
// It is bounded for all tasks: one that has stopped for something else has the next interrupt before it is resumed, and
// a task that it has started meanwhile is held where it was born.
#include "tracees/stop.h"

#include <algorithm>
#include <csignal>
#include <set>

#include <sched.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "engine/hit/dispatch.h"
#include "engine/hit/step_over.h"
#include "engine/transparent/points.h"
#include "engine/transparent/signals/deferred_signals.h"
#include "os/facts/blocked_syscall.h"
#include "trace/run_until.h"
#include "tracees/choice.h"

namespace ktrace::tracees {

using arch::Host;
using arch::SlotPosition;
using engine::AddressSpaceState;
using engine::Over;
using engine::Process;
using engine::Task;

namespace {

/// In the page, or in what a killed ktrace has put beside its slots (jumps, the agent): the task soon comes out by
/// itself.
bool is_in_our_code(AddressSpaceState &space, VirtAddr pc) {
    return space.recovery.contains(pc) || (space.slots.contains(pc) && !space.site_of_pc_in_slot(pc));
}

/// A task at an interrupt's stop: its pc goes out of the slot it may be in. False: it is in the middle of an
/// instruction there and has to run on first.
bool leave_slot(Process &process, Task &task, os::Stopped &stopped) {
    engine::Site *site = process.space->site_of_pc_in_slot(stopped.pc());
    if (!site) {
        if (is_in_our_code(*process.space, stopped.pc())) return false;
        if (task.step.over == Over::stepping) return false;
        task.step.over = Over::none;
        return true;
    }
    switch (Host::slot_position(site->placed, site->slot, stopped.pc())) {
    case SlotPosition::at_start:
        // One that sets the trap flag is only ever stepped: by a ktrace that was killed, if not by this one.
        if (task.step.over == Over::stepping || site->placed.sets_trap_flag) engine::abort_step(task, *site, stopped);
        stopped.set_pc(site->at);
        break;
    case SlotPosition::after:
        if (task.step.over == Over::stepping) return false;
        stopped.set_pc(site->at + site->plan.length);
        break;
    case SlotPosition::inside:
        if (task.step.over == Over::none)
            engine::step_out(task, *site, stopped); // and no further: job control may have stopped it
        return false;
    case SlotPosition::elsewhere: break;
    }
    engine::give_back_state(task);
    task.step.over = Over::none;
    task.step.site = nullptr;
    return true;
}

/// A call that makes a copy of the memory: the copy must be known before ktrace's pages go.
bool copies_memory(const AddressSpaceState &space, const os::TaskPlace &place) {
#ifdef SYS_fork
    if (place.syscall == SYS_fork) return true;
#endif
    constexpr std::uint64_t shares = CLONE_VM;
    if (place.syscall == SYS_clone3) { // its first argument points to what begins with the flags
        auto flags = space.memory->read_value<std::uint64_t>(VirtAddr{place.arguments[0]});
        return flags && (*flags & shares) == 0;
    }
    return place.syscall == SYS_clone && (place.arguments[0] & shares) == 0;
}

/// Sleeping in the kernel, at an address of its own, or a leader that has ended before its threads: it can be let go by
/// the end of the tracing thread, undisturbed.
bool sleeps_outside(const AddressSpaceState &space, const Task &task) {
    if (os::has_ended(task.tid)) return true;
    if (task.signals.saved_mask || task.signals.saved_dispatch || task.signals.held) return false; // to be given back
    if (task.step.over == Over::stepping || task.step.over == Over::to_syscall || !task.watches.registers.empty())
        return false;
    auto place = os::read_task_place(task.pid, task.tid);
    return place && !place->running && place->syscall >= 0 && !space.slots.contains(place->pc) &&
           !space.recovery.contains(place->pc) && !copies_memory(space, *place);
}

/// The stop of a trap of ktrace's is pending: until it is served the pc stands behind the trap's first byte. Or a fault
/// of the program's own is: an injected call would take it for its own end.
bool fault_is_pending(os::Stopped &stopped) { return os::has_fault_pending(stopped.tid()); }

/// Lets a task run on before it is interrupted again, twice as long each time. On a busy processor an interrupt that
/// follows at once is there before the task has come to its next instruction, again and again.
class Pause {
  public:
    void take() {
        trace::pause(next_ns_);
        next_ns_ = std::min(next_ns_ * 2, longest_ns);
    }

  private:
    static constexpr std::uint64_t longest_ns = 500'000'000;
    std::uint64_t next_ns_ = 50'000;
};

/// Of a task's processor time. The handler in ktrace's page is done in microseconds: a task that stays there runs code
/// that a process has put into a page that only looks like ktrace's. Other clocks go on while a task waits for a busy
/// processor.
constexpr std::uint64_t longest_in_page_ms = 50;

enum class Run : std::uint8_t { borrowers, all };

/// Those that a task may be waiting for go on until it stops. A parent in vfork does not stop before its child has
/// ended or called exec: those that borrow its memory go on.
void let_others_run(trace::Trace &trace, const SpacePointer &space, Tid waiting, HeldTasks &held, Run who) {
    for (Tid tid : tasks_in(trace, space)) {
        auto task = trace.engine.tasks.find(tid.value);
        const Process *process = task == trace.engine.tasks.end() ? nullptr : trace.engine.process_of(task->second);
        if (!process || (who == Run::borrowers && !process->borrowed) || tid == waiting) continue;
        if (auto stopped = held.find(tid.value); stopped != held.end()) {
            run_on(trace, task->second, std::move(stopped->second));
            held.erase(stopped);
        } else {
            trace::serve_next_of(trace, tid, trace::Wait::no);
        }
    }
}

/// Those that have to be stopped and are not held yet.
std::vector<Tid> tasks_to_stop(trace::Trace &trace, const SpacePointer &space, const HeldTasks &held,
                               std::set<pid_t> &left_alone) {
    std::vector<Tid> tids;
    for (Tid tid : tasks_in(trace, space)) {
        if (held.contains(tid.value) || left_alone.contains(tid.value)) continue;
        if (!trace.engine.waiter.has_news_of(tid) && sleeps_outside(*space, trace.engine.tasks.at(tid.value)))
            left_alone.insert(tid.value);
        else
            tids.push_back(tid);
    }
    return tids;
}

/// How long a task is left alone. At work in the kernel for a call, a write to a pipe whose reader keeps up, it would
/// answer with the part that is done; most of these sleep soon, and need not be stopped then.
std::uint64_t patience_with(const Task &task) {
    constexpr std::uint64_t with_running_ns = 10'000'000;
    switch (os::interrupted(task.pid, task.tid)) {
    case os::Interrupted::runs: return with_running_ns;
    case os::Interrupted::cut_short: return patience_for_calls_ns;
    default: return 0;
    }
}

/// No task stands still meanwhile.
void let_fall_asleep(trace::Trace &trace, const SpacePointer &space, std::set<pid_t> &left_alone) {
    constexpr std::uint64_t moment_ns = 200'000;
    const std::uint64_t began_ns = monotonic_ns();
    auto is_waited_for = [&](Tid tid) {
        return monotonic_ns() - began_ns < patience_with(trace.engine.tasks.at(tid.value));
    };
    auto is_over = [&] {
        const std::vector<Tid> tids = tasks_to_stop(trace, space, {}, left_alone);
        return std::none_of(tids.begin(), tids.end(), is_waited_for);
    };
    trace::serve_each_until(trace, is_over, moment_ns);
}

} // namespace

bool ask_to_stop(trace::Trace &trace, Tid tid) { return trace.engine.waiter.has_news_of(tid) || os::interrupt(tid); }

void run_on(trace::Trace &trace, Task &task, os::Stopped stopped) {
    if (stopped.stop().kind == os::Stop::Kind::group) os::interrupt(task.tid); // it stops again before it runs
    engine::continue_task(trace.engine, task, std::move(stopped));
}

std::vector<Tid> tasks_in(const trace::Trace &trace, const SpacePointer &space) {
    std::vector<Tid> tids;
    for (const auto &[id, task] : trace.engine.tasks) {
        auto process = trace.engine.processes.find(task.pid.value);
        if (process != trace.engine.processes.end() && process->second->space == space) tids.push_back(Tid{id});
    }
    return tids;
}

void let_borrowers_run(trace::Trace &trace, const SpacePointer &space, Tid waiting, HeldTasks &held) {
    if (os::sleeps_deeply(waiting)) let_others_run(trace, space, waiting, held, Run::borrowers);
}

namespace {

/// A task that has an interrupt before it, and does not stop: it sleeps where nothing wakes it, or uses up a processor
/// and does not come out of the kernel. (One that only waits for its processor stops in the end, and the sooner the
/// fewer run.)
class Stuck {
  public:
    Stuck(Pid pid, Tid tid) : pid_{pid}, tid_{tid}, run_before_ms_{os::processor_time_ms(pid, tid)} {}
    /// Should it be waited for by others that stand still, or the other way round?
    bool is_so() {
        if (monotonic_ns() - began_ns_ < patience_ms * 1'000'000) return false;
        const bool found = os::sleeps_deeply(tid_) || os::processor_time_ms(pid_, tid_) > run_before_ms_ + patience_ms;
        if (found && since_ns_ == 0) since_ns_ = monotonic_ns();
        return since_ns_ != 0;
    }
    /// Enough of it.
    bool is_for_long() const {
        constexpr std::uint64_t with_sleeper_ns = 2'000'000'000, with_runner_ns = 10'000'000'000;
        return since_ns_ != 0 &&
               monotonic_ns() - since_ns_ > (os::sleeps_deeply(tid_) ? with_sleeper_ns : with_runner_ns);
    }

  private:
    static constexpr std::uint64_t patience_ms = 50;
    Pid pid_;
    Tid tid_;
    std::uint64_t run_before_ms_, began_ns_ = monotonic_ns(), since_ns_ = 0;
};

/// The answer of a task that was asked to stop; given_up: it does not stop.
trace::Answer await_stop(trace::Trace &trace, SpacePointer space, Tid tid, HeldTasks &held, Others others) {
    auto task = trace.engine.tasks.find(tid.value);
    Stuck stuck(task == trace.engine.tasks.end() ? Pid{tid.value} : task->second.pid, tid);
    auto is_stuck = [&] {
        let_borrowers_run(trace, space, tid, held);
        if (!stuck.is_so()) return false;
        if (stuck.is_for_long()) return true;
        if (others == Others::run_where_it_needs_them) let_others_run(trace, space, tid, held, Run::all);
        return false;
    };
    return trace::await_answer(trace, tid, is_stuck);
}

} // namespace

MovedOut move_out_of_slot(trace::Trace &trace, Process &process, Tid tid, HeldTasks &held, Others others) {
    bool asked = false; // a stop is sure to come
    Pause pause;
    const std::uint64_t run_before_ms = os::processor_time_ms(process.target.pid, tid);
    auto has_run_long = [&] {
        return os::processor_time_ms(process.target.pid, tid) > run_before_ms + longest_in_page_ms;
    };
    while (true) {
        if (!asked && !ask_to_stop(trace, tid)) break;
        asked = true;
        const trace::Answer answer = await_stop(trace, process.space, tid, held, others);
        if (answer.kind == trace::Answer::Kind::given_up) return {std::nullopt, true};
        if (answer.kind == trace::Answer::Kind::gone) break;
        if (answer.kind == trace::Answer::Kind::served) {
            if (!trace.engine.tasks.contains(tid.value)) return {};
            asked = false;
            continue;
        }
        os::Stopped stopped(trace.engine.waiter, *answer.stop);
        Task &task = trace.engine.tasks.at(tid.value);
        engine::at_stop(trace.engine, process, task, stopped);
        bool pending = fault_is_pending(stopped);
        bool stays = is_in_our_code(*process.space, stopped.pc()) && has_run_long();
        if (!pending && (leave_slot(process, task, stopped) || stays)) {
            stopped.write_back(); // the slots go while it is held: should ktrace be killed then, it is outside
            return {std::move(stopped), false};
        }
        // The trap's stop comes, or the step's; one that runs on in a slot is interrupted again.
        asked = pending || task.step.over != Over::none;
        if (pending)
            std::move(stopped).resume(os::Resume::run); // to step again is to leave a stepped popf its trap flag
        else
            engine::continue_task(trace.engine, task, std::move(stopped));
        if (!asked) pause.take();
    }
    trace.events.handle_end(trace, tid);
    return {};
}

bool hold_tasks(trace::Trace &trace, const SpacePointer &space, HeldTasks &held) {
    std::set<pid_t> left_alone;
    bool all = true;
    let_fall_asleep(trace, space, left_alone);
    while (true) {
        const std::vector<Tid> running = tasks_to_stop(trace, space, held, left_alone);
        if (running.empty()) return all;
        for (Tid tid : running) ask_to_stop(trace, tid);
        for (Tid tid : running) {
            auto task = trace.engine.tasks.find(tid.value);
            Process *process = task == trace.engine.tasks.end() ? nullptr : trace.engine.process_of(task->second);
            if (!process || process->space != space) continue;
            auto one = move_out_of_slot(trace, *process, tid, held, Others::run_where_it_needs_them);
            if (one.stopped) held.emplace(tid.value, std::move(*one.stopped));
            if (one.is_stuck) left_alone.insert(tid.value);
            all = all && !one.is_stuck;
        }
    }
}

namespace {

/// False: it sleeps in another call, stands at a stop, or has ended.
bool may_copy_memory(trace::Trace &trace, const AddressSpaceState &space, Tid tid) {
    if (trace.engine.waiter.has_news_of(tid)) return false;
    auto place = os::read_task_place(trace.engine.tasks.at(tid.value).pid, tid);
    if (!place) return !os::has_ended(tid);
    return place->running || copies_memory(space, *place);
}

} // namespace

void let_forks_end(trace::Trace &trace, const SpacePointer &space) {
    constexpr std::uint64_t moment_ns = 50'000;
    const std::uint64_t began_ns = monotonic_ns();
    std::vector<Tid> tids = tasks_in(trace, space);
    std::set<pid_t> asked;
    while (true) {
        std::erase_if(tids, [&](Tid tid) { return !may_copy_memory(trace, *space, tid); });
        const std::uint64_t passed_ns = monotonic_ns() - began_ns;
        if (tids.empty() || passed_ns >= patience_for_calls_ns) return;
        for (Tid tid : tids)
            if (!asked.contains(tid.value) && passed_ns >= patience_with(trace.engine.tasks.at(tid.value))) {
                os::interrupt(tid);
                asked.insert(tid.value);
            }
        trace::pause(moment_ns);
    }
}

} // namespace ktrace::tracees
