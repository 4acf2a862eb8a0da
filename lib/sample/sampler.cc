#include "sample/sampler.h"

#include <algorithm>

#include "base/clock.h"
#include "os/facts/blocked_syscall.h"
#include "os/self/own_signals.h"
#include "os/self/short_slices.h"
#include "program/run/record.h"
#include "tracees/detach.h"
#include "tracees/seize.h"

namespace ktrace::sample {

using engine::Process;

Status Sampler::add(pid_t pid) {
    auto looked = tracees::look_at(trace_, pid);
    if (!looked) return tl::make_unexpected(looked.error());
    trace_.engine.processes[pid] = std::move(*looked);
    return {};
}

bool Sampler::is_over() const { return os::OwnSignals::are_pending() || !failed_; }

Status Sampler::run(unsigned frequency, std::uint64_t end_ns) {
    os::ask_for_short_slices(); // a look that is late sees the thread when it sleeps again
    period_ns_ = 1'000'000'000 / frequency;
    std::uint64_t next = monotonic_ns();
    while (!is_over() && next < end_ns) {
        look_at_all();
        if (threads_.empty()) break;
        next = std::max(next + period_ns_, monotonic_ns());
        stops_.serve_until(std::min(next, end_ns), [this] { return is_over(); });
    }
    constexpr std::uint64_t patience_ns = 50'000'000; // for those that wait for a processor
    stops_.serve_until(monotonic_ns() + patience_ns, [this] { return !stops_.awaits_any(); });
    tracees::serve_for_the_last_time(trace_);
    count_looks();
    return failed_;
}

void Sampler::look_at_all() {
    round_++;
    look_for_modules();
    for (const auto &[pid, process] : trace_.engine.processes) {
        for (Tid tid : os::read_tasks(Pid{pid})) {
            auto known = threads_.find(tid.value);
            if (known == threads_.end()) {
                if (os::is_kernel_worker(tid)) continue;
                known = threads_.try_emplace(tid.value, Pid{pid}, tid).first;
            }
            known->second.round = round_;
            look_at(*process, tid, known->second);
        }
    }
    std::erase_if(threads_, [this](const auto &each) {
        const bool has_gone = each.second.round != round_;
        if (has_gone) stops_.forget(Tid{each.first});
        return has_gone;
    });
}

void Sampler::note(Thread &thread, Sample &sample, bool is_on, const std::optional<os::Ran> &ran,
                   std::uint64_t stood_ns) {
    if (ran) thread.shares.see(sample, {is_on, monotonic_ns(), *ran, stood_ns}, period_ns_);
}

/// A stack of less than half a look is none that was seen.
void Sampler::count_looks() {
    for (auto &[key, sample] : samples_)
        for (Seen *seen : {&sample.on, &sample.off}) seen->looks = (seen->ns + period_ns_ / 2) / period_ns_;
    std::erase_if(samples_, [](const auto &each) { return each.second.on.looks + each.second.off.looks == 0; });
}

void Sampler::look_at(Process &process, Tid tid, Thread &thread) {
    const Pid pid = process.target.pid;
    if (stops_.awaits(tid)) return;
    const auto runs = thread.runs.read();
    const bool has_not_run = thread.waits_in && (thread.ran == runs || still_waits(process, tid, thread));
    thread.stopped_in.reset();
    if (!has_not_run && (!runs || os::has_ended(tid))) return; // a leader may end before its threads
    if (has_not_run) return note(thread, *thread.waits_in, false, runs);
    thread.waits_in = nullptr;
    auto waiting = read_waiting(trace_.engine, process, tid);
    if (waiting && (waiting->is_complete || !may_be_stopped(pid, tid))) {
        Sample &sample = sample_of(process, tid, std::move(waiting->stack));
        sample.syscall = waiting->place.syscall;
        thread.waits_in = &sample;
        thread.ran = runs;
        return note(thread, sample, false, runs);
    }
    thread.asked_ns = monotonic_ns();
    if (auto asked = stops_.ask(pid, tid); !asked && asked.error().kind == Error::Kind::denied) failed_ = asked;
}

/// A thread that was stopped in its sleep has run for that alone, if it is back where it was.
bool Sampler::still_waits(const Process &process, Tid tid, Thread &thread) {
    constexpr std::uint64_t for_a_stop = 3; // it came on a processor: to stop, to go on, to be let begin its call anew
    if (!thread.stopped_in || !thread.ran) return false;
    const auto runs = thread.runs.read();
    auto place = os::read_task_place(process.target.pid, tid);
    const bool is_back = runs && runs->times <= thread.ran->times + for_a_stop && place && !place->running &&
                         place->pc == thread.stopped_in->pc && place->sp == thread.stopped_in->sp;
    if (is_back) thread.ran = runs;
    return is_back;
}

/// A call that would be cut short by that is left alone.
bool Sampler::may_be_stopped(Pid pid, Tid tid) const {
    return !os::sleeps_deeply(tid) && os::interrupted(pid, tid) != os::Interrupted::cut_short;
}

void Sampler::see(Process &process, Tid tid, const Snapshot &snapshot) {
    auto found = threads_.find(tid.value);
    if (found == threads_.end()) return;
    Thread &thread = found->second;
    Sample &sample = sample_of(process, tid, unwind(trace_.engine, process, snapshot));
    const auto runs = thread.runs.read();
    const bool is_on = !snapshot.rested_in;
    note(thread, sample, is_on, runs, snapshot.copied_ns - std::min(snapshot.copied_ns, thread.asked_ns));
    if (is_on) return;
    if (sample.syscall < 0) sample.syscall = snapshot.rested_in->syscall;
    thread.waits_in = &sample;
    thread.stopped_in = snapshot.rested_in;
    thread.ran = runs;
}

Sample &Sampler::sample_of(Process &process, Tid tid, Stack stack) {
    for (std::uint64_t frame : stack)
        if (!target::module_at(process.target.modules, VirtAddr{frame & ~program::interrupted}))
            has_unknown_code_ = true;
    const std::string_view comm = trace_.engine.names.read(process.target.pid, tid);
    return samples_[{process.target.pid, std::string(comm), std::move(stack)}];
}

/// Code of no module may be a library's that was loaded meanwhile, or generated.
void Sampler::look_for_modules() {
    constexpr std::uint64_t every_ns = 1'000'000'000;
    if (!has_unknown_code_ || monotonic_ns() < modules_ns_ + every_ns) return;
    has_unknown_code_ = false;
    modules_ns_ = monotonic_ns();
    std::vector<std::string> unreadable;
    for (const auto &[pid, process] : trace_.engine.processes)
        if (!target::refresh(process->target, trace_.modules, unreadable)) continue; // it is ending
}

} // namespace ktrace::sample
