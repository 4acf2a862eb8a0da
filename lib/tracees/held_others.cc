#include "tracees/held_others.h"

#include "base/clock.h"
#include "engine/transparent/points.h"
#include "os/proc/procfs.h"
#include "trace/run_until.h"

namespace ktrace::tracees {

namespace {

constexpr std::uint64_t patience_for_others_ns = 10'000'000;

} // namespace

HeldOthers::HeldOthers(trace::Trace &trace, const SpacePointer &space, Tid but) : trace_{trace} {
    std::vector<Tid> asked;
    for (Tid tid : tasks_in(trace, space))
        if (tid != but && runs(tid) && ask_to_stop(trace, tid)) asked.push_back(tid);
    for (Tid tid : asked) hold(tid);
}

HeldOthers::~HeldOthers() {
    for (os::Stopped &stopped : held_) run_on(trace_, trace_.engine.tasks.at(stopped.tid().value), std::move(stopped));
}

bool HeldOthers::runs(Tid tid) const {
    auto place = os::read_task_place(trace_.engine.tasks.at(tid.value).pid, tid);
    return place && place->running;
}

void HeldOthers::hold(Tid tid) {
    const std::uint64_t end = monotonic_ns() + patience_for_others_ns;
    const auto is_late = [end] { return monotonic_ns() > end; };
    trace::Answer answer = trace::await_answer(trace_, tid, is_late);
    while (answer.kind == trace::Answer::Kind::served && trace_.engine.tasks.contains(tid.value) && !is_late())
        answer = trace::await_answer(trace_, tid, is_late);
    if (answer.kind == trace::Answer::Kind::gone) trace_.events.handle_end(trace_, tid);
    auto task = trace_.engine.tasks.find(tid.value);
    if (answer.kind != trace::Answer::Kind::stands || task == trace_.engine.tasks.end()) return;
    held_.emplace_back(trace_.engine.waiter, *answer.stop);
    if (engine::Process *process = trace_.engine.process_of(task->second))
        engine::at_stop(trace_.engine, *process, task->second, held_.back());
}

} // namespace ktrace::tracees
