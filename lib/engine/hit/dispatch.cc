#include "engine/hit/dispatch.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "engine/agent/agent_stops.h"
#include "engine/calls/timing.h"
#include "engine/transparent/points.h"

namespace ktrace::engine {

using os::Stop;
using os::Stopped;

namespace {

/// A task that is not known yet: a child whose stop came before its parent's event.
Event unknown(Engine &engine, Stopped stopped) {
    engine.verdicts.note(stopped.stop(), {}, Verdict::unknown);
    Event event;
    event.kind = Event::Kind::unknown;
    event.tid = stopped.tid();
    event.stop = stopped.stop();
    event.stopped = std::make_unique<Stopped>(std::move(stopped));
    return event;
}

Event serve(Engine &engine, const Stop &stop) {
    if (stop.kind == Stop::Kind::exited || stop.kind == Stop::Kind::killed) return apply_end(engine, stop);
    Stopped stopped(engine.waiter, stop);
    auto found = engine.tasks.find(stop.tid.value);
    Process *process = found == engine.tasks.end() ? nullptr : engine.process_of(found->second);
    if (!process) return unknown(engine, std::move(stopped));
    Task &task = found->second;
    task.last_stop = engine.stops;
    if (engine.overhead) engine.overhead->begin_stop();
    see_agent_stop(engine, *process, task, stopped);
    at_stop(engine, *process, task, stopped);
    see_agent_records(engine, *process, task, stopped); // where it has been in a jump until now
    const Seen seen = gather(engine, *process, task, stopped);
    if (task.calls.youngest) note_stop(task, stopped);
    const Verdict verdict = classify(seen.facts);
    if (KT_LOG_SHOWS(log::Level::debug)) stopped.pc();
    task.verdict = engine.verdicts.note(stop, stopped.known_pc(), verdict);
    return apply(engine, *process, task, verdict, seen, std::move(stopped));
}

std::string last_line(const VerdictRing &verdicts) {
    char room[VerdictRing::longest_line];
    return verdicts.line(verdicts.noted(), room);
}

} // namespace

Event dispatch(Engine &engine, const Stop &stop) {
    engine.stops++;
    Event event = serve(engine, stop);
    KT_LOG_DEBUG(last_line(engine.verdicts));
    return event;
}

} // namespace ktrace::engine
