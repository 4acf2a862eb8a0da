#include "tracees/seize.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <unordered_set>
#include <utility>

#include <unistd.h>

#include "base/clock.h"
#include "engine/hit/dispatch.h"
#include "engine/transparent/points.h"
#include "engine/transparent/sigtrap/disposition.h"
#include "os/self/own_signals.h"
#include "os/self/ticker.h"
#include "recovery/guardian.h"
#include "trace/run_until.h"
#include "tracees/access_errors.h"
#include "tracees/choice.h"
#include "tracees/stop.h"

namespace ktrace::tracees {

using engine::Process;
using engine::Task;

std::optional<os::ProcessStatus> read_status_without_ending_tracer(pid_t pid) {
    constexpr std::uint64_t patience_ns = 5'000'000'000;
    constexpr std::uint64_t moment_ns = 500'000;
    const std::uint64_t end = monotonic_ns() + patience_ns;
    auto is_ending = [](Tid tracer) { // not this thread, whose own guardian may be gone
        return tracer.value != ::gettid() && (os::is_dying(tracer) || recovery::is_abandoned(tracer));
    };
    auto status = os::read_status(pid);
    while (status && status->tracer != 0 && is_ending(Tid{status->tracer}) && monotonic_ns() < end) {
        trace::pause(moment_ns);
        status = os::read_status(pid);
    }
    return status;
}

namespace {

/// A process of which nothing is left to look at: it has ended, and so have all its threads.
bool is_zombie(pid_t pid) {
    return os::has_ended(Tid{pid}) && os::process_folder(Pid{pid}) == "/proc/" + std::to_string(pid);
}

} // namespace

Result<std::unique_ptr<Process>> look_at(trace::Trace &trace, pid_t pid) {
    auto status = read_status_without_ending_tracer(pid);
    const bool is_others = status && status->tracer != 0 && status->tracer != ::gettid();
    if (is_others && !is_zombie(status->tgid)) return fail(denied(status->tgid));
    return look_into(trace, pid);
}

Result<std::unique_ptr<Process>> look_into(trace::Trace &trace, pid_t pid) {
    auto status = os::read_status(pid);
    std::string id = std::to_string(pid);
    if (!status) return fail(unseen(pid));
    pid = status->tgid; // the id of any of its threads will do
    if (is_zombie(pid))
        return fail(Error::Kind::refused, "process " + id + " (" + status->name + ") has ended: it is a zombie");
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
    // Its code is in no file; or it was looked at in the middle of an exec, and has other mappings now.
    const std::vector<os::Mapping> &before = process.target.maps;
    return before.empty() || maps->empty() || before.front().start != maps->front().start ||
           before.back().start != maps->back().start;
}

namespace {

/// PTRACE_SEIZE; it waits while another thread of the process is in exec, which may wait for ends of threads that only
/// ktrace can take, or that no process takes. EINTR: the user has waited for long enough.
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

/// True in the middle of a probed instruction, or with a pending trap or fault: an injected call would take that for
/// its own end.
bool is_underway(const trace::Trace &trace, const os::Stopped &stopped) {
    auto found = trace.engine.tasks.find(stopped.tid().value);
    bool over = found != trace.engine.tasks.end() && found->second.step.over != engine::Over::none;
    return over || os::has_fault_pending(stopped.tid());
}

/// Resumes it up to that stop, or to the end of the instruction.
void go_on(trace::Trace &trace, os::Stopped stopped) {
    auto found = trace.engine.tasks.find(stopped.tid().value);
    // To step once more with a step's end pending would leave a stepped popf its trap flag.
    if (found == trace.engine.tasks.end() || os::has_fault_pending(stopped.tid(), SIGTRAP))
        std::move(stopped).resume(os::Resume::run);
    else
        engine::continue_task(trace.engine, found->second, std::move(stopped));
}

/// A task is asked to stop and waited for, but not for long: where the kernel waits for a disk, or for a page that
/// another process fills in, no interrupt reaches it.
trace::Answer ask_patiently(trace::Trace &trace, const SpacePointer &space, Tid tid) {
    constexpr std::uint64_t patience_ns = 200'000'000;
    if (!ask_to_stop(trace, tid)) return {};
    const std::uint64_t end = monotonic_ns() + patience_ns;
    HeldTasks none;
    auto gives_up = [&] {
        let_borrowers_run(trace, space, tid, none);
        return monotonic_ns() >= end;
    };
    return trace::await_answer(trace, tid, gives_up);
}

/// Where the user waits, too: no task of the process has stopped for a while.
void tell_of_waiting(trace::Trace &trace, Pid pid, Tid tid) {
    trace::tell_once(trace,
                     "waiting for process " + std::to_string(pid.value) + ": its thread " + std::to_string(tid.value) +
                         " waits in the kernel, where nothing stops it (vfork until its child is through, a disk); "
                         "Ctrl-C ends the waiting");
}

} // namespace

Result<os::Stopped> stop_one(trace::Trace &trace, Process &process, Patience patience) {
    using Kind = trace::Answer::Kind;
    constexpr std::uint64_t silence_ns = 1'000'000'000;
    const std::uint64_t began_ns = monotonic_ns();
    Pid pid = process.target.pid;
    auto space = process.space;
    std::unordered_set<pid_t> asked;
    while (auto tid = task_to_ask(trace, pid, asked, began_ns)) {
        const trace::Answer answer = ask_patiently(trace, space, *tid);
        if (answer.kind == Kind::given_up) {
            if (patience == Patience::none || os::OwnSignals::are_pending())
                return fail(Error::Kind::refused,
                            "no thread of process " + std::to_string(pid.value) + " can be stopped: thread " +
                                std::to_string(tid->value) + " waits in the kernel",
                            "attach again when it has gone on");
            if (monotonic_ns() - began_ns > silence_ns) tell_of_waiting(trace, pid, *tid);
            asked.insert(tid->value);
        }
        if (answer.kind == Kind::gone) trace.events.handle_end(trace, *tid);
        if (answer.kind != Kind::stands) continue;
        os::Stopped stopped(trace.engine.waiter, *answer.stop);
        Task &task = trace.engine.tasks.at(tid->value);
        engine::at_stop(trace.engine, process, task, stopped);
        if (is_underway(trace, stopped)) {
            go_on(trace, std::move(stopped));
            continue;
        }
        return stopped;
    }
    return fail(Error::Kind::gone, "process " + std::to_string(pid.value) + " has ended");
}

namespace {

/// The tasks of the process whose debug registers are not up to date.
std::vector<Tid> unwatched_tasks(const trace::Trace &trace, const engine::AddressSpaceState &space, Pid pid) {
    std::vector<Tid> tids;
    for (const auto &[id, task] : trace.engine.tasks)
        if (task.pid == pid && task.watches.generation != space.watch_generation && !os::has_ended(task.tid))
            tids.push_back(task.tid);
    return tids;
}

/// A task whose interrupt would cut its call short, and may be waited for.
bool is_waited_for(const Task &task, std::uint64_t since_ns) {
    return monotonic_ns() - since_ns < patience_for_calls_ns &&
           os::interrupted(task.pid, task.tid) == os::Interrupted::cut_short;
}

} // namespace

Status set_all_watches(trace::Trace &trace, Process &process) {
    Pid pid = process.target.pid;
    auto space = process.space;
    if (space->watch_generation == 0 || process.silent) return {};
    trace.engine.unwatched = {};
    const std::uint64_t since_ns = monotonic_ns();
    constexpr unsigned look_every = 64; // stops, if they come without a pause
    std::unordered_set<pid_t> asked;    // all are before one is waited for: many may share a processor
    unsigned in_a_row = 0;
    bool waits = true;
    // An interrupt that was made is there before the task runs on, however long that takes.
    auto is_done = [&] {
        if (in_a_row % look_every != 0) return false;
        if (!waits || monotonic_ns() - since_ns >= 2 * patience_for_calls_ns) return true;
        auto found = trace.engine.processes.find(pid.value);
        if (found == trace.engine.processes.end() || found->second->space != space) return true; // an exec sees to all
        waits = false;
        for (Tid tid : unwatched_tasks(trace, *space, pid)) {
            const Task &task = trace.engine.tasks.at(tid.value);
            if (!asked.contains(tid.value) && !is_waited_for(task, since_ns)) {
                os::interrupt(tid);
                asked.insert(tid.value);
            }
            waits = waits || !asked.contains(tid.value) || !os::sleeps_deeply(tid);
        }
        return false;
    };
    trace::run_until(
        trace, is_done,
        {[] { return trace::Wait::briefly; }, [&](const os::Stop *stop) { in_a_row = stop ? in_a_row + 1 : 0; }});
    if (trace.engine.unwatched.value == 0) return {};
    return fail(Error::Kind::refused,
                "the debug registers of thread " + std::to_string(trace.engine.unwatched.value) + " cannot be set",
                "another program may use them, or the virtual machine may not have them");
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
    if (group) trace::serve_next_of(trace, tid, trace::Wait::yes);
}

} // namespace ktrace::tracees
