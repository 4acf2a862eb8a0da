#include "engine/hit/resume.h"

#include <csignal>
#include <utility>

#include "base/clock.h"
#include "engine/agent/agent_stops.h"
#include "engine/calls/repeated_hit.h"
#include "engine/calls/timing.h"
#include "engine/space/classify.h"
#include "engine/transparent/points.h"
#include "engine/watch/watch.h"

namespace ktrace::engine {

namespace {

os::Resume way_of(const Task &task, const os::Stopped &stopped) {
    const bool at_calls =
        task.until_exec || task.repeat.follows != 0 || task.sigtrap.watches_action != 0 || task.restart.failed;
    const bool at_signal = stopped.stop().kind == os::Stop::Kind::signal;
    const bool steps = task.step.over == Over::stepping || task.watches.is_off;
    const bool trap_pending = steps && !at_signal && os::has_fault_pending(task.tid, SIGTRAP);
    return way_on(steps, task.step.over, at_calls, trap_pending);
}

} // namespace

void continue_task(Engine &engine, Task &task, os::Stopped stopped, int signal) {
    if (engine.watches) set_watches(engine, task, stopped);
    if (signal != 0) {
        if (Process *process = engine.process_of(task)) before_signal(engine, *process, task, stopped, signal);
        follow_handler(task, stopped, signal);
    }
    const BeforeResume until_resumed(engine, task, stopped);
    const os::Resume how = way_of(task, stopped);
    if (how == os::Resume::step) task.step.from = stopped.pc();
    if (task.calls.youngest && engine.waiter.looks_often()) {
        stopped.write_back(); // before the clock is read: how much is written differs from site to site
        note_resume(task, stopped);
    }
    if (Process *process = engine.process_of(task); process && process->space->threads)
        leave_stop_out(engine, *process, task, stopped);
    if (engine.overhead)
        engine.overhead->end_stop(task.tid, stopped.stop().seen_ns,
                                  engine.corrections.present(Clock::stops).per_stop_ns);
    engine.verdicts.note_resume(task.verdict, how, signal);
    task.clock.now.stops++;
    if (how == os::Resume::step) task.clock.now.steps++;
    std::move(stopped).resume(how, signal);
}

} // namespace ktrace::engine
