#include "sample/stops.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <unistd.h>

#include "base/clock.h"
#include "engine/hit/dispatch.h"
#include "os/facts/blocked_syscall.h"
#include "os/self/ticker.h"
#include "trace/run_until.h"
#include "tracees/access_errors.h"
#include "tracees/seize.h"

namespace ktrace::sample {

using engine::Event;
using engine::Process;
using engine::Task;
using os::Stop;

namespace {

void handle_end(trace::Trace &trace, Tid tid) {
    trace.engine.tasks.erase(tid.value);
    trace.engine.waiter.forget(tid);
}

Task &add_task(trace::Trace &trace, Pid pid, Tid tid) {
    Task &task = trace.engine.tasks[tid.value];
    task = Task{};
    task.tid = tid;
    task.pid = pid;
    trace.engine.waiter.watch(tid);
    return task;
}

/// The process runs another program: its threads are gone, but for the one that has called exec and is the leader now.
void renew(trace::Trace &trace, Event event) {
    const Pid pid{event.tid.value};
    std::vector<Tid> former;
    for (const auto &[id, task] : trace.engine.tasks)
        if (task.pid == pid && id != pid.value) former.push_back(Tid{id});
    for (Tid tid : former) handle_end(trace, tid);
    auto found = trace.engine.processes.find(pid.value);
    auto looked = tracees::look_into(trace, pid.value);
    if (looked && found != trace.engine.processes.end()) {
        auto &known = trace.output.former_modules[pid.value]; // for the names of what was seen before
        const auto &modules = found->second->target.modules;
        known.insert(known.end(), modules.begin(), modules.end());
        found->second = std::move(*looked);
    }
    add_task(trace, pid, event.tid);
    std::move(*event.stopped).resume(os::Resume::run);
}

void handle_event(trace::Trace &trace, Event event) {
    if (!event.stopped) return;
    if (event.stop.kind == Stop::Kind::exec || event.kind == Event::Kind::exec) return renew(trace, std::move(event));
    const bool is_signal = event.stop.kind == Stop::Kind::signal;
    std::move(*event.stopped).resume(os::Resume::run, is_signal ? event.stop.signal : 0);
}

/// The stop of an interrupt, or the group's, at which a task stands that was asked to stop.
bool answers(const Stop &stop) { return stop.kind == Stop::Kind::started || stop.kind == Stop::Kind::group; }

} // namespace

const trace::EventHandlers look_events{handle_event, handle_end};

Status Stops::seize(Pid pid, Tid tid) {
    if (trace_.engine.tasks.contains(tid.value)) return {};
    constexpr std::uint64_t patience_ns = 200'000'000;
    const std::uint64_t end = monotonic_ns() + patience_ns;
    os::Ticker ticker; // the request waits while another thread is in exec
    ticker.start();
    int error = EAGAIN;
    while (!os::Ticker::until_tick(os::seize_for_looks, tid, error))
        if (monotonic_ns() > end) return fail(Error::Kind::gone, "another of its threads is in exec");
    auto status = error != 0 ? os::read_status(tid.value) : std::nullopt;
    const bool is_ours = status && status->tracer == ::gettid(); // a tick came just when it was done
    if (error == ESRCH || (error != 0 && os::has_ended(tid))) return fail(Error::Kind::gone, "it has ended");
    if (error != 0 && !is_ours) return fail(tracees::denied(pid.value));
    add_task(trace_, pid, tid);
    return {};
}

Status Stops::ask(Pid pid, Tid tid) {
    if (auto seized = seize(pid, tid); !seized) return seized;
    if (!os::interrupt(tid)) return fail(Error::Kind::gone, "it has ended");
    asked_.insert(tid.value);
    return {};
}

void Stops::copy(Task &task, Process &process, const Stop &stop) {
    os::Stopped stopped(trace_.engine.waiter, stop);
    Snapshot snapshot = copy_thread(process, stopped.registers());
    std::move(stopped).keep(); // it is served right behind this
    snapshot.rested_in = os::interrupted_call(task.pid, task.tid, snapshot.registers);
    if (!snapshot.rested_in && stop.kind == Stop::Kind::group)
        snapshot.rested_in = os::read_task_place(task.pid, task.tid);
    copies_.emplace_back(stop.tid, std::move(snapshot));
}

void Stops::see_stop(const Stop &stop) {
    auto task = trace_.engine.tasks.find(stop.tid.value);
    Process *process = task == trace_.engine.tasks.end() ? nullptr : trace_.engine.process_of(task->second);
    const bool has_ended = stop.kind == Stop::Kind::exited || stop.kind == Stop::Kind::killed;
    if (has_ended || !process)
        asked_.erase(stop.tid.value);
    else if (!answers(stop) && awaits(stop.tid))
        os::interrupt(stop.tid); // the kernel forgets an interrupt with any stop that comes in its place
    else if (answers(stop) && asked_.erase(stop.tid.value) != 0)
        copy(task->second, *process, stop);
}

void Stops::show_copies() {
    for (auto &[tid, snapshot] : std::exchange(copies_, {})) {
        auto task = trace_.engine.tasks.find(tid.value);
        Process *process = task == trace_.engine.tasks.end() ? nullptr : trace_.engine.process_of(task->second);
        if (process) seen_(*process, tid, snapshot);
    }
}

void Stops::serve_until(std::uint64_t end_ns, const std::function<bool()> &is_done) {
    constexpr std::uint64_t moment_ns = 1'000'000;
    auto is_over = [&] {
        show_copies();
        return is_done() || monotonic_ns() >= end_ns;
    };
    auto before = [this](const Stop *stop) {
        if (stop) see_stop(*stop);
    };
    while (!is_over()) {
        trace::run_until(trace_, is_over, {[] { return trace::Wait::briefly; }, before});
        const std::uint64_t now = monotonic_ns();
        if (trace_.engine.tasks.empty() && now < end_ns) trace::pause(std::min(end_ns - now, moment_ns));
    }
}

} // namespace ktrace::sample
