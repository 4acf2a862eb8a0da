#include "engine/calls/timing.h"

#include <algorithm>

#include "arch/host.h"
#include "base/clock.h"
#include "engine/space/engine.h"
#include "engine/space/returns.h"
#include "engine/space/site.h"

namespace ktrace::engine {

namespace {

std::uint64_t without(std::uint64_t from, std::uint64_t part) { return from > part ? from - part : 0; }

/// The time on a processor since the last resume: from coming on it to leaving it for the stop at hand.
std::uint64_t ran_ns(const os::Presence &presence) { return presence.left_ns - presence.came_ns; }

CallTime time_of(const Task &task, const Instance &call, std::uint64_t seen_ns) {
    CallTime time;
    time.stops_ns = without(seen_ns, call.start_ns);
    if (call.owner != task.tid) return time; // another thread has ended it (a fiber, a goroutine)
    const Marks &now = task.clock.now, &then = call.marks;
    time.stops_inside = now.stops - then.stops - 1;
    time.steps = now.steps - then.steps;
    time.stops_ns = without(time.stops_ns, now.stopped_ns - then.stopped_ns);
    if (call.is_recorded && now.unknown == then.unknown && task.clock.at_hand.is_known())
        time.switches_ns = now.ran_ns - then.ran_ns + ran_ns(task.clock.at_hand);
    return time;
}

/// The next older call of the same thread that began with another hit.
const Instance *older_at_another_hit(const Instance *call) {
    const Instance *older = call->older_call;
    while (older && older->hit == call->hit) older = older->older_call;
    return older;
}

bool is_nested(const Instance &call) {
    for (const Instance *older = older_at_another_hit(&call); older; older = older->older_call)
        if (older->attachment == call.attachment) return true;
    return false;
}

/// Each stop inside leaves an error of its own.
program::TimeErrors errors_of(const Correction &correction, std::uint64_t stops_inside) {
    program::TimeErrors errors = correction.of_stop * static_cast<double>(stops_inside);
    return errors += correction.of_call;
}

} // namespace

bool is_timed(const Attachment &attachment) {
    if (attachment.kind != Attachment::Kind::ret) return false;
    return attachment.handler || (attachment.program && attachment.program->needs(program::Moment::ret).duration);
}

void begin_recording(const Engine &engine, Task &task, const Attachment &attachment) {
    TaskClock &clock = task.clock;
    if (!engine.waiter.looks_often() || clock.switches || clock.was_refused || !is_timed(attachment)) return;
    if (!os::SchedRecords::has_room()) return; // there may be when its next call begins
    clock.switches = os::SchedRecords::open(task.tid);
    clock.was_refused = !clock.switches;
}

void note_stop(Task &task, os::Stopped &stopped) {
    TaskClock &clock = task.clock;
    if (!clock.switches) return;
    clock.switches->take(clock.at_hand);
    if (clock.at_hand.left_ns != 0) return;
    stopped.pc(); // a request, which is answered when the task has left its processor
    clock.switches->take(clock.at_hand);
}

bool is_asleep(os::Stopped &stopped) {
    if (stopped.stop().kind != os::Stop::Kind::started) return false;
    const arch::Host::Registers &now = stopped.registers();
    return !arch::Host::interrupted_for_good(now) && arch::HostNative::was_in_call(stopped.tid(), now);
}

void note_resume(Task &task, os::Stopped &stopped) {
    TaskClock &clock = task.clock;
    const std::uint64_t now = monotonic_ns(), stopped_ns = without(now, stopped.stop().seen_ns);
    const bool has_slept_on = is_asleep(stopped);
    if (!has_slept_on) clock.now.stopped_ns += stopped_ns;
    if (clock.switches) {
        if (has_slept_on) clock.now.ran_ns += stopped_ns;
        if (clock.at_hand.is_known())
            clock.now.ran_ns += ran_ns(clock.at_hand);
        else
            clock.now.unknown++;
        clock.at_hand = {};
        clock.switches->skip(); // of injected calls
    }
    for (Instance *call = task.calls.youngest; call && call->start_ns == 0; call = call->older_call) {
        call->start_ns = now;
        call->marks = clock.now;
        call->is_recorded = clock.switches != nullptr;
    }
}

program::Duration duration(Engine &engine, const Task &task, const Instance &call, std::uint64_t seen_ns) {
    program::Duration took;
    if (!engine.waiter.looks_often() || !is_timed(*call.attachment)) return took;
    const CallTime time = time_of(task, call, seen_ns);
    engine.timed.last = time;
    const Clock clock = time.switches_ns ? Clock::switches : Clock::stops;
    Timed::Calls &calls = clock == Clock::switches ? engine.timed.by_switches : engine.timed.by_stops;
    (engine.corrections.is_apart ? calls.apart : calls.together)++;
    const Correction &correction = engine.corrections.present(clock);
    took.taken_ns =
        correction.per_call_ns + time.stops_inside * correction.per_stop_ns + time.steps * correction.per_step_ns;
    took.ns = without(time.switches_ns.value_or(time.stops_ns), took.taken_ns);
    took.inner_ns = std::min(took.ns, call.inner_ns);
    took.since_ns = without(seen_ns, call.start_ns);
    took.is_nested = call.is_within || (call.attachment->active > 1 && is_nested(call));
    took.errors = errors_of(correction, time.stops_inside);
    return took;
}

namespace {

bool is_shown(const Instance *call) { return call->attachment->encloses == 0; } // not --inside's own

void add_to(Instance *call, std::uint64_t ns) {
    for (Instance *each = call; each && each->hit == call->hit; each = each->older_call) each->inner_ns += ns;
}

} // namespace

void add_to_caller(const Instance &call, std::uint64_t ns) {
    Instance *caller = call.older_call;
    for (; caller && caller->hit == call.hit; caller = caller->older_call)
        if (is_shown(caller)) return; // another probe of the same hit adds it
    while (caller && !is_shown(caller)) caller = caller->older_call;
    if (!caller || caller->frame.sp < call.frame.sp) return; // there is none, or it is on another stack
    add_to(caller, ns);
}

void add_to_youngest(const Task &task, std::uint64_t ns) {
    Instance *caller = task.calls.youngest;
    while (caller && !is_shown(caller)) caller = caller->older_call;
    if (caller) add_to(caller, ns);
}

void leave_out(TaskClock &clock, std::uint64_t ns) {
    clock.now.stopped_ns += ns;
    clock.now.ran_ns -= ns; // only differences count
}

} // namespace ktrace::engine
