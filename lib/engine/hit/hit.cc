#include "engine/hit/hit.h"

#include "engine/calls/calls.h"
#include "engine/calls/exits.h"
#include "engine/calls/goroutines.h"
#include "engine/calls/inside.h"
#include "engine/calls/timing.h"
#include "engine/eval/evaluation.h"
#include "engine/eval/inject.h"
#include "engine/hit/hit_callbacks.h"
#include "engine/transparent/sigtrap/disposition.h"

namespace ktrace::engine {

using arch::Host;
using program::Moment;
using program::Outcome;

Follows run_pre(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped) {
    Follows follows;
    Diversion diversion;
    std::size_t unused = 0;
    for (std::size_t i = 0; i < site.probes.size(); i++) {
        Attachment *armed = site.probes[i];
        if (engine.closing) break;
        if (!armed->on) continue;
        if (engine.overhead && armed->counters) engine.overhead->charge(armed->location);
        if (armed->inside != 0 && !is_inside(engine, process, task, armed->inside, site.at, stopped)) {
            armed->counters->hits++;
            armed->counters->filtered++;
            continue;
        }
        if (armed->handler) {
            Handled handled = handle_hit(engine, process, task, *armed, site, stopped);
            if (handled.post) follows.post.add(i);
            follows.pc_is_set = handled.pc_is_set;
            if (follows.pc_is_set) break; // as kprobes: the others do not see this hit
            continue;
        }
        switch (armed->kind) {
        case Attachment::Kind::unwinds: task.unwinds++; break;
        case Attachment::Kind::sets_action: watch_action(task); break;
        case Attachment::Kind::sets_mask: see_mask(process, task, stopped); break;
        case Attachment::Kind::restarts: note_restart(*process.space, *site.plan.target, stopped.sp()); break;
        case Attachment::Kind::stack_leaves: leave_stack(engine, process, task, stopped); break;
        case Attachment::Kind::stack_arrives: arrive_on_stack(engine, process, task); break;
        case Attachment::Kind::loader:
        case Attachment::Kind::watch:
        case Attachment::Kind::waking:
        case Attachment::Kind::ifunc: break;
        case Attachment::Kind::probe:
        case Attachment::Kind::entry: {
            armed->counters->hits++;
            Moment moment = armed->kind == Attachment::Kind::probe ? Moment::pre : Moment::entry;
            Outcome outcome = run_program(engine, process, task, *armed, moment, site.at, stopped, {}, unused, {}, 0);
            count(*armed->counters, outcome);
            if (inject(engine, process, stopped, diversion)) armed->counters->injected++;
            // What was filtered or not selected before the instruction is so after it.
            bool wanted = outcome == Outcome::event && armed->program->needs(Moment::post).runs;
            if (wanted) follows.post.add(i);
            break;
        }
        case Attachment::Kind::ret: {
            armed->counters->hits++;
            if (armed->encloses != 0) {
                enter_enclosing(engine, process, task, *armed, site, stopped);
                break;
            }
            std::vector<std::byte> capture(armed->program->capture_size());
            std::size_t captured = 0;
            Outcome outcome = Outcome::accepted;
            engine.changes.clear();
            if (armed->program->needs(Moment::call).runs)
                outcome = run_program(engine, process, task, *armed, Moment::call, site.at, stopped, capture, captured,
                                      {}, 0);
            count(*armed->counters, outcome);
            if (outcome != Outcome::accepted) break;
            capture.resize(captured);
            Instance *call = begin_call(engine, process, task, *armed, site, stopped, std::move(capture));
            if (!call) break; // missed: it runs untouched
            call->injected = inject(engine, process, stopped, diversion);
            if (call->injected) armed->counters->injected++;
            break;
        }
        }
    }
    // All that are there have seen the hit, calls that begin with it included.
    if (diversion.skips) diversion.moved = skip_function(process, site.at, stopped) || diversion.moved;
    follows.pc_is_set = follows.pc_is_set || diversion.moved;
    return follows;
}

void run_post(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped, const Places &wanted) {
    wanted.for_each([&](std::size_t place) {
        Attachment &armed = *site.probes[place];
        if (engine.closing || !armed.on) return;
        if (engine.overhead) engine.overhead->charge(armed.location);
        if (armed.handler) {
            handle_post(process, task, armed, site, stopped);
            return;
        }
        std::size_t unused = 0;
        run_program(engine, process, task, armed, Moment::post, stopped.pc(), stopped, {}, unused, {}, 0);
    });
}

namespace {

void finish_call(Engine &engine, Process &process, Task &task, const Site &site, Instance &call, os::Stopped &stopped) {
    if (engine.closing) {
        end_unreturned(engine, process, call);
        return;
    }
    if (engine.overhead) engine.overhead->charge(call.armed->location);
    if (call.armed->encloses != 0) {
        end_returned(engine, process, call);
        return;
    }
    std::size_t unused = 0;
    Attachment &armed = *call.armed;
    std::uint64_t took = duration(engine, task, call, stopped.stop().seen_ns);
    if (armed.handler) {
        handle_return(engine, process, task, call, site.at, took, stopped);
        return;
    }
    count(*armed.counters,
          run_program(engine, process, task, armed, Moment::ret, site.at, stopped, {}, unused, call.captured, took));
    Diversion diversion; // a function's result is set in registers
    if (inject(engine, process, stopped, diversion) && !call.injected) armed.counters->injected++;
    end_returned(engine, process, call);
}

} // namespace

void run_returns(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped) {
    VirtAddr frame_sp = stopped.sp() - Host::return_pop;
    Returns &returns = process.space->returns;
    while (Instance *call = returns.at(frame_sp)) {
        if (call->frame.return_address != site.at) break;
        if (vanished(process, task, *call))
            end_unreturned(engine, process, *call);
        else
            finish_call(engine, process, task, site, *call, stopped);
    }
}

void run_exits(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped) {
    VirtAddr frame_sp = stopped.sp();
    Returns &returns = process.space->returns;
    const bool is_return = site.plan.flow == arch::Flow::ret;
    const Instance *youngest = returns.at(frame_sp);
    if (!youngest || (!is_return && !leaves_unseen(process, site, *youngest->armed, stopped))) return;
    while (Instance *call = returns.at(frame_sp)) {
        if (call->return_site) break;
        if (is_return)
            finish_call(engine, process, task, site, *call, stopped);
        else
            end_unreturned(engine, process, *call);
    }
}

} // namespace ktrace::engine
