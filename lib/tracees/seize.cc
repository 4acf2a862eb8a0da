#include "tracees/seize.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <limits>
#include <unordered_set>
#include <utility>

#include <linux/seccomp.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/hit/dispatch.h"
#include "engine/transparent/restart/rest.h"
#include "engine/transparent/restart/syscall_restart.h"
#include "engine/transparent/sigtrap/disposition.h"
#include "lifecycle/events.h"
#include "os/facts/blocked_syscall.h"
#include "os/self/own_signals.h"
#include "os/self/ticker.h"
#include "recovery/guardian.h"
#include "tracees/access_errors.h"
#include "tracees/handover.h"
#include "tracees/stop.h"
#include "tracees/tripwires.h"
#include "tracees/waking.h"

namespace ktrace::tracees {

using engine::Process;
using engine::Task;

std::optional<os::ProcessStatus> read_status_without_ending_tracer(pid_t pid) {
    constexpr std::uint64_t patience_ns = 5'000'000'000;
    constexpr timespec moment{0, 500'000};
    const std::uint64_t end = monotonic_ns() + patience_ns;
    auto is_ending = [](Tid tracer) { // not this thread, whose own guardian may be gone
        return tracer.value != ::gettid() && (os::is_dying(tracer) || recovery::is_abandoned(tracer));
    };
    auto status = os::read_status(pid);
    while (status && status->tracer != 0 && is_ending(Tid{status->tracer}) && monotonic_ns() < end) {
        ::nanosleep(&moment, nullptr);
        status = os::read_status(pid);
    }
    return status;
}

Result<std::unique_ptr<Process>> look_at(trace::Trace &trace, pid_t pid) {
    auto status = read_status_without_ending_tracer(pid);
    std::string id = std::to_string(pid);
    if (!status) return fail(unseen(pid));
    pid = status->tgid; // the id of any of its threads will do
    if (os::has_ended(Tid{pid}) && os::process_folder(Pid{pid}) == "/proc/" + std::to_string(pid))
        return fail(Error::Kind::refused, "process " + id + " (" + status->name + ") has ended: it is a zombie");
    if (status->tracer != 0 && status->tracer != ::gettid() && !can_be_taken_over(Pid{pid})) return fail(denied(pid));
    if (pid == ::getpid() || (trace.engine.ledger && pid == ::getppid())) // the guardian
        return fail(Error::Kind::refused, "ktrace cannot trace itself");
    if (os::is_kernel_thread(pid))
        return fail(Error::Kind::refused, "process " + id + " (" + status->name + ") is a thread of the kernel",
                    "ktrace traces programs; perf and bpftrace trace the kernel");
    if (is_32_bit(Pid{pid}))
        return fail(Error::Kind::refused, "process " + id + " (" + status->name + ") is a 32-bit program",
                    "ktrace traces 64-bit programs");
    auto space = target::AddressSpace::open(Pid{pid});
    if (!space) return fail(denied(pid));
    auto process = std::make_unique<Process>();
    process->target.pid = Pid{pid};
    process->target.comm = status->name;
    process->target.space = std::move(*space);
    process->space = std::make_shared<engine::AddressSpaceState>();
    process->space->memory = process->target.space;
    std::vector<std::string> unreadable;
    if (auto refreshed = target::refresh(process->target, trace.modules, unreadable); !refreshed)
        return tl::make_unexpected(refreshed.error());
    for (const std::string &which : unreadable) trace::tell_once(trace, "cannot read " + which);
    return process;
}

bool became_another(const Process &process) {
    auto maps = os::read_maps(process.target.pid);
    if (!maps) return false; // it has ended
    for (const target::LoadedModule &module : process.target.modules) {
        if (!module.is_program) continue;
        auto start_of = [&](const std::vector<os::Mapping> &in) -> std::optional<os::Mapping> {
            for (const os::Mapping &m : in)
                if (m.executable && module.start <= m.start && m.start < module.end) return m;
            return std::nullopt;
        };
        auto before = start_of(process.target.maps);
        auto now = start_of(*maps);
        if (!before) continue;
        if (!now || now->start != before->start || now->inode != before->inode) return true;
        std::byte one;
        return process.target.space->read(now->start, std::span(&one, 1)) != 1;
    }
    return true; // looked at in the middle of it
}

namespace {

/// PTRACE_SEIZE; it waits while another thread of the process is in exec, which may wait for ends of threads that only
/// we can take, or that nobody takes. EINTR: the user has waited for long enough.
int seize_patiently(trace::Trace &trace, Tid tid) {
    constexpr std::uint64_t patience_ns = 200'000'000; // longer than a busy processor makes it take
    const std::uint64_t end = monotonic_ns() + patience_ns;
    int error = 0;
    while (!os::Ticker::until_tick(os::seize, tid, error)) {
        if (os::OwnSignals::are_pending() && monotonic_ns() > end) return EINTR;
        trace.engine.waiter.look_at_others(tid);
    }
    return error;
}

enum class Seized : std::uint8_t { yes, ended, denied, never, given_up };

Seized seize_one(trace::Trace &trace, Tid tid) {
    if (os::is_kernel_worker(tid)) return Seized::never; // some kernels refuse it, others never stop it
    constexpr int attempts = 10;                         // its id may pass to another thread meanwhile (exec)
    for (int i = 0; i < attempts; i++) {
        int error = seize_patiently(trace, tid);
        if (error == 0) return Seized::yes;
        if (error == ESRCH) return Seized::ended;
        if (error == EINTR) return Seized::given_up;
        auto status = read_status_without_ending_tracer(tid.value);
        // A task that a seized one has started is traced from its birth; its event comes later.
        if (status && status->tracer == ::gettid()) return Seized::yes;
        if (!status || status->state == 'Z' || status->state == 'X') return Seized::ended;
    }
    return Seized::denied;
}

} // namespace

Status seize_all(trace::Trace &trace, Process &process) {
    os::Ticker ticker;
    ticker.start();
    Pid pid = process.target.pid;
    for (bool found_new = true; found_new;) {
        found_new = false;
        for (Tid tid : os::read_tasks(pid)) {
            if (trace.engine.tasks.contains(tid.value)) continue;
            Seized seized = seize_one(trace, tid);
            if (seized == Seized::denied) return fail(denied(pid.value));
            if (seized == Seized::given_up)
                return fail(Error::Kind::refused,
                            "process " + std::to_string(pid.value) +
                                " cannot be attached to: one of its threads waits in execve",
                            "attach again when it has gone on");
            if (seized != Seized::yes) continue;
            found_new = true;
            process.had_threads = process.had_threads || tid.value != pid.value;
            Task &task = trace.engine.tasks[tid.value];
            task.tid = tid;
            task.pid = pid;
            engine::note_mask(task);
            trace.engine.waiter.watch(tid);
        }
    }
    bool any = std::any_of(trace.engine.tasks.begin(), trace.engine.tasks.end(),
                           [&](const auto &entry) { return entry.second.pid == pid; });
    if (!any) return fail(Error::Kind::gone, "process " + std::to_string(pid.value) + " has ended");
    return {};
}

namespace {

/// How much is lost where a task is stopped. One that runs may be at work for a call in the kernel, which answers with
/// the part that is done then (a write to a pipe whose reader keeps up, a large read of /dev/zero); and one that
/// nothing wakes is to be waited for.
enum class Loss : std::uint8_t { nothing, perhaps, patience, its_time };

Loss loss_of(os::Interrupted then, Tid tid) {
    switch (then) {
    case os::Interrupted::goes_on:
    case os::Interrupted::made_again: return os::sleeps_deeply(tid) ? Loss::patience : Loss::nothing;
    case os::Interrupted::runs: return Loss::perhaps;
    case os::Interrupted::begins_anew: break;
    }
    return Loss::its_time;
}

/// Who may be asked to stop, and to make system calls: first by how many seccomp filters judge those, since one may end
/// the process, which is worse than a time-out that begins anew.
struct Candidate {
    int filters = 0;
    Loss loss = Loss::nothing;
    Tid tid;

    bool is_better_than(const Candidate &other) const {
        return std::pair(filters, loss) < std::pair(other.filters, other.loss);
    }
};

/// Those that are not suspended for our calls (os/remote). Strict mode ends the thread for any.
int filters_of(Tid tid) {
    static const bool may_suspend = os::may_suspend_seccomp();
    auto status = may_suspend ? std::nullopt : os::read_status(tid.value);
    if (status && status->seccomp == SECCOMP_MODE_STRICT) return std::numeric_limits<int>::max();
    return status ? status->seccomp_filters : 0;
}

std::optional<Candidate> least_disturbed_but(const trace::Trace &trace, Pid pid,
                                             const std::unordered_set<pid_t> &others) {
    std::optional<Candidate> best;
    for (const auto &[id, task] : trace.engine.tasks) {
        if (task.pid != pid || others.contains(id) || os::has_ended(task.tid)) continue;
        const Candidate candidate{filters_of(task.tid), loss_of(os::interrupted(pid, task.tid), task.tid), task.tid};
        if (!best || candidate.is_better_than(*best)) best = candidate;
    }
    return best;
}

/// Somebody else's calls are judged by more filters.
bool is_freest(const trace::Trace &trace, Pid pid, const Candidate &candidate) {
    return std::any_of(trace.engine.tasks.begin(), trace.engine.tasks.end(), [&](const auto &entry) {
        return entry.second.pid == pid && filters_of(entry.second.tid) > candidate.filters;
    });
}

} // namespace

bool is_freer(Tid one, Tid other) { return filters_of(one) < filters_of(other); }

std::optional<Tid> least_disturbed(const trace::Trace &trace, Pid pid) {
    auto best = least_disturbed_but(trace, pid, {});
    return best ? std::optional(best->tid) : std::nullopt;
}

namespace {

/// In the middle of a probed instruction, or with a trap that it has hit, or a fault, that is still to be told: a
/// system call made now would take that for its own end.
bool is_underway(const trace::Trace &trace, const os::Stopped &stopped) {
    auto found = trace.engine.tasks.find(stopped.tid().value);
    bool over = found != trace.engine.tasks.end() && found->second.over != engine::Over::none;
    return over || os::has_fault_pending(stopped.tid());
}

/// To what is to be told, or to the end of the instruction.
void go_on(trace::Trace &trace, os::Stopped stopped) {
    auto found = trace.engine.tasks.find(stopped.tid().value);
    // To step once more with a step's end pending would leave a stepped popf its trap flag.
    if (found == trace.engine.tasks.end() || os::has_fault_pending(stopped.tid(), SIGTRAP))
        std::move(stopped).resume(os::Resume::run);
    else
        engine::continue_task(trace.engine, found->second, std::move(stopped));
}

} // namespace

bool may_stop_one(const trace::Trace &trace, Pid pid) {
    constexpr timespec moment{0, 200'000};
    const std::uint64_t end = monotonic_ns() + patience_with_running_ns;
    auto best = least_disturbed_but(trace, pid, {});
    while (best && best->loss == Loss::perhaps && monotonic_ns() < end) {
        ::nanosleep(&moment, nullptr);
        best = least_disturbed_but(trace, pid, {});
    }
    return !best || best->loss != Loss::its_time || is_freest(trace, pid, *best);
}

namespace {

/// Whom to ask to stop: the one that it disturbs least, and then, for as long as nobody of these has stopped, another
/// one whose time-out is not lost by it. `asked` is emptied when nobody is left.
std::optional<Tid> whom_to_ask(const trace::Trace &trace, Pid pid, std::unordered_set<pid_t> &asked) {
    if (!asked.empty()) {
        const auto best = least_disturbed_but(trace, pid, {}), next = least_disturbed_but(trace, pid, asked);
        if (next && next->loss != Loss::its_time && next->filters == best->filters) return next->tid;
        asked.clear();
    }
    return least_disturbed(trace, pid);
}

/// As await_stop, but not for long: where the kernel waits for a disk, or for a page that somebody else fills in, no
/// interrupt reaches the task. Nothing, and `patient` false: it has not stopped.
std::optional<os::Stop> await_stop_briefly(trace::Trace &trace, const SpacePointer &space, Tid tid,
                                           std::uint64_t patience_ns, bool &patient) {
    const std::uint64_t end = monotonic_ns() + patience_ns;
    HeldTasks none;
    while ((patient = monotonic_ns() < end)) {
        auto stop = await_stop_once(trace, space, tid, none);
        if (stop || errno != EINTR || os::has_ended(tid)) return stop;
    }
    return std::nullopt;
}

} // namespace

namespace {

/// Where the user waits with us: nobody of the process has stopped for a while.
void tell_of_waiting(trace::Trace &trace, Pid pid, Tid tid) {
    trace::tell_once(trace,
                     "waiting for process " + std::to_string(pid.value) + ": its thread " + std::to_string(tid.value) +
                         " waits in the kernel, where nothing stops it (vfork until its child is through, a disk); "
                         "Ctrl-C ends the waiting");
}

} // namespace

Result<os::Stopped> stop_one(trace::Trace &trace, Process &process) {
    constexpr std::uint64_t patience_ns = 200'000'000, silence_ns = 1'000'000'000;
    const std::uint64_t began_ns = monotonic_ns();
    os::Ticker ticker; // no wait for one task is for ever
    ticker.start();
    Pid pid = process.target.pid;
    auto space = process.space;
    std::unordered_set<pid_t> asked;
    while (auto tid = whom_to_ask(trace, pid, asked)) {
        bool patient = true;
        auto stop = engine::interrupt_asleep(trace.engine, *tid)
                        ? await_stop_briefly(trace, space, *tid, patience_ns, patient)
                        : std::nullopt;
        if (!stop && !patient) {
            if (os::OwnSignals::are_pending())
                return fail(Error::Kind::refused,
                            "no thread of process " + std::to_string(pid.value) + " can be stopped: thread " +
                                std::to_string(tid->value) + " waits in the kernel",
                            "attach again when it has gone on");
            if (monotonic_ns() - began_ns > silence_ns) tell_of_waiting(trace, pid, *tid);
            asked.insert(tid->value);
            continue;
        }
        if (!stop) {
            lifecycle::handle_end(trace, *tid);
            continue;
        }
        if (stop->kind == os::Stop::Kind::started || stop->kind == os::Stop::Kind::group) {
            os::Stopped stopped(trace.engine.waiter, *stop);
            if (is_underway(trace, stopped)) {
                go_on(trace, std::move(stopped));
                continue;
            }
            if (stop->kind == os::Stop::Kind::started)
                engine::go_unnoticed(process, trace.engine.tasks.at(tid->value), stopped);
            return stopped;
        }
        lifecycle::handle_event(trace, engine::dispatch(trace.engine, *stop));
    }
    return fail(Error::Kind::gone, "process " + std::to_string(pid.value) + " has ended");
}

namespace {

/// One that sleeps in a call whose time-out would begin anew is stopped where that ends, should that be soon. Nothing:
/// it sleeps on (`sleeps_on`), or it has been awake when it was looked at again.
std::optional<os::Stopped> stop_at_waking(trace::Trace &trace, const SpacePointer &space, Pid pid, bool &sleeps_on) {
    const auto tid = least_disturbed(trace, pid);
    sleeps_on = false;
    if (!tid || !set_tripwire(*space, trace.engine.tasks.at(tid->value))) return std::nullopt;
    os::Ticker ticker; // no wait for one task is for ever
    ticker.start();
    bool patient = true;
    auto stop = await_stop_briefly(trace, space, *tid, patience_with_running_ns, patient);
    sleeps_on = !stop && !patient;
    if (auto task = trace.engine.tasks.find(tid->value); task != trace.engine.tasks.end())
        task->second.tripwire.reset();
    if (!stop) return std::nullopt;
    std::optional<os::Stopped> stopped(std::in_place, trace.engine.waiter, *stop);
    if (!os::is_tripwire(*tid) || stop->kind != os::Stop::Kind::signal || is_underway(trace, *stopped)) {
        std::move(*stopped).keep();
        lifecycle::handle_event(trace, engine::dispatch(trace.engine, *stop));
        return std::nullopt;
    }
    return leave_tripwire(trace, stopped) ? std::move(stopped) : std::nullopt;
}

} // namespace

std::optional<os::Stopped> stop_at_waking(trace::Trace &trace, Pid pid) {
    constexpr int attempts = 64; // for one that is asleep, and awake when it is looked at again
    bool sleeps_on = false;
    for (int i = 0; i < attempts && !sleeps_on && !may_stop_one(trace, pid); i++) {
        auto process = trace.engine.processes.find(pid.value);
        if (process == trace.engine.processes.end()) break;
        if (auto woken = stop_at_waking(trace, process->second->space, pid, sleeps_on)) return woken;
    }
    return std::nullopt;
}

Result<std::optional<os::Stopped>> stop_one_gently(trace::Trace &trace, Process &process) {
    const Pid pid = process.target.pid;
    if (auto woken = stop_at_waking(trace, pid)) return woken;
    auto found = trace.engine.processes.find(pid.value);
    if (found == trace.engine.processes.end())
        return fail(Error::Kind::gone, "process " + std::to_string(pid.value) + " has ended");
    if (!may_stop_one(trace, pid)) return std::nullopt;
    auto one = stop_one(trace, *found->second);
    if (!one) return tl::make_unexpected(one.error());
    return std::move(*one);
}

namespace {

/// The tasks of the process whose debug registers are not what they should be.
std::vector<Tid> unwatched_tasks(const trace::Trace &trace, const engine::AddressSpaceState &space, Pid pid) {
    std::vector<Tid> tids;
    for (const auto &[id, task] : trace.engine.tasks)
        if (task.pid == pid && task.watched_as != space.watch_generation && !os::has_ended(task.tid))
            tids.push_back(task.tid);
    return tids;
}

/// Serves stops until the task has its debug registers, or will have them before it runs on.
void wait_until_watched(trace::Trace &trace, const engine::AddressSpaceState &space, Tid tid) {
    constexpr unsigned look_every = 64; // stops of others
    for (unsigned served = 0;; served++) {
        auto task = trace.engine.tasks.find(tid.value);
        if (task == trace.engine.tasks.end() || task->second.watched_as == space.watch_generation) return;
        const Process *process = trace.engine.process_of(task->second);
        if (!process || process->space.get() != &space) return; // an exec sees to everything
        auto stop = trace.engine.waiter.next(os::Waiter::Block::briefly);
        if (stop) lifecycle::handle_event(trace, engine::dispatch(trace.engine, *stop));
        if ((!stop || served % look_every == 0) && (os::sleeps_deeply(tid) || os::has_ended(tid))) return;
    }
}

} // namespace

Status set_all_watches(trace::Trace &trace, Process &process) {
    Pid pid = process.target.pid;
    auto space = process.space;
    if (space->watch_generation == 0 || process.silent) return {};
    trace.engine.unwatched = {};
    std::unordered_set<pid_t> interrupted, asleep; // those asleep get them when they wake up
    while (true) {
        // All are asked before one is waited for: each of many that share a processor stops when its turn comes.
        std::vector<Tid> asked;
        for (Tid tid : unwatched_tasks(trace, *space, pid)) {
            if (asleep.contains(tid.value)) continue;
            if (!interrupted.contains(tid.value) && watch_waking(trace, process, tid)) {
                asleep.insert(tid.value);
                continue;
            }
            if (interrupted.insert(tid.value).second && engine::interrupt_asleep(trace.engine, tid))
                asked.push_back(tid);
        }
        if (asked.empty()) break;
        for (Tid tid : asked) wait_until_watched(trace, *space, tid);
    }
    if (trace.engine.unwatched.value == 0) return {};
    return fail(Error::Kind::refused,
                "the debug registers of thread " + std::to_string(trace.engine.unwatched.value) + " cannot be set",
                "somebody else may use them, or the virtual machine may not have them");
}

void release_one(trace::Trace &trace, os::Stopped stopped) {
    // A process that was stopped by job control stays so: the task stops again before it runs.
    Tid tid = stopped.tid();
    bool group = stopped.stop().kind == os::Stop::Kind::group;
    if (group) os::interrupt(tid);
    auto found = trace.engine.tasks.find(tid.value);
    if (found == trace.engine.tasks.end())
        std::move(stopped).resume(os::Resume::run);
    else
        engine::continue_task(trace.engine, found->second, std::move(stopped));
    if (!group) return;
    if (auto stop = trace.engine.waiter.next_of(tid))
        lifecycle::handle_event(trace, engine::dispatch(trace.engine, *stop));
}

} // namespace ktrace::tracees
