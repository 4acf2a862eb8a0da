#include "trap/hit.h"

#include "trap/calls.h"
#include "trap/evaluation.h"
#include "trap/exits.h"
#include "trap/goroutines.h"
#include "trap/handled.h"
#include "trap/inject.h"
#include "trap/inside.h"
#include "trap/restore.h"

namespace ktrace::trap {

using arch::Host;
using program::Moment;
using program::Outcome;

Follows run_pre(World &world, Traced &traced, Task &task, Site &site, os::Stopped &stopped) {
    Follows follows;
    Diversion diversion;
    std::size_t unused = 0;
    for (std::size_t i = 0; i < site.probes.size(); i++) {
        Armed *armed = site.probes[i];
        if (world.closing) break;
        if (!armed->on) continue;
        if (world.overhead && armed->counters) world.overhead->charge(armed->location);
        if (armed->inside != 0 && !is_inside(world, traced, task, armed->inside, site.at, stopped)) {
            armed->counters->hits++;
            armed->counters->filtered++;
            continue;
        }
        if (armed->handler) {
            Handled handled = handle_hit(world, traced, task, *armed, site, stopped);
            if (handled.post) follows.post.add(i);
            follows.pc_is_set = handled.pc_is_set;
            if (follows.pc_is_set) break; // as kprobes: the others do not see this hit
            continue;
        }
        switch (armed->kind) {
        case Armed::Kind::unwinds: task.unwinds++; break;
        case Armed::Kind::sets_action: watch_action(task); break;
        case Armed::Kind::sets_mask: see_mask(traced, task, stopped); break;
        case Armed::Kind::restarts: note_restart(*traced.ground, *site.plan.target, stopped.sp()); break;
        case Armed::Kind::stack_leaves: leave_stack(world, traced, task, stopped); break;
        case Armed::Kind::stack_arrives: arrive_on_stack(world, traced, task); break;
        case Armed::Kind::loader:
        case Armed::Kind::watch:
        case Armed::Kind::waking:
        case Armed::Kind::ifunc: break;
        case Armed::Kind::probe:
        case Armed::Kind::entry: {
            armed->counters->hits++;
            Moment moment = armed->kind == Armed::Kind::probe ? Moment::pre : Moment::entry;
            Outcome outcome = run_program(world, traced, task, *armed, moment, site.at, stopped, {}, unused, {}, 0);
            count(*armed->counters, outcome);
            if (inject(world, traced, stopped, diversion)) armed->counters->injected++;
            // What was filtered or not selected before the instruction is so after it.
            bool wanted = outcome == Outcome::event && armed->program->needs(Moment::post).runs;
            if (wanted) follows.post.add(i);
            break;
        }
        case Armed::Kind::ret: {
            armed->counters->hits++;
            if (armed->encloses != 0) {
                enter_enclosing(world, traced, task, *armed, site, stopped);
                break;
            }
            std::vector<std::byte> capture(armed->program->capture_size());
            std::size_t captured = 0;
            Outcome outcome = Outcome::accepted;
            world.changes.clear();
            if (armed->program->needs(Moment::call).runs)
                outcome =
                    run_program(world, traced, task, *armed, Moment::call, site.at, stopped, capture, captured, {}, 0);
            count(*armed->counters, outcome);
            if (outcome != Outcome::accepted) break;
            capture.resize(captured);
            Instance *call = begin_call(world, traced, task, *armed, site, stopped, std::move(capture));
            if (!call) break; // missed: it runs untouched
            call->injected = inject(world, traced, stopped, diversion);
            if (call->injected) armed->counters->injected++;
            break;
        }
        }
    }
    // All that are there have seen the hit, calls that begin with it included.
    if (diversion.skips) diversion.moved = skip_function(traced, site.at, stopped) || diversion.moved;
    follows.pc_is_set = follows.pc_is_set || diversion.moved;
    return follows;
}

void run_post(World &world, Traced &traced, Task &task, Site &site, os::Stopped &stopped, const Places &wanted) {
    wanted.for_each([&](std::size_t place) {
        Armed &armed = *site.probes[place];
        if (world.closing || !armed.on) return;
        if (world.overhead) world.overhead->charge(armed.location);
        if (armed.handler) {
            handle_post(traced, task, armed, site, stopped);
            return;
        }
        std::size_t unused = 0;
        run_program(world, traced, task, armed, Moment::post, stopped.pc(), stopped, {}, unused, {}, 0);
    });
}

namespace {

void finish_call(World &world, Traced &traced, Task &task, const Site &site, Instance &call, os::Stopped &stopped) {
    if (world.closing) {
        end_unreturned(world, traced, call);
        return;
    }
    if (world.overhead) world.overhead->charge(call.armed->location);
    if (call.armed->encloses != 0) {
        end_returned(world, traced, call);
        return;
    }
    std::size_t unused = 0;
    Armed &armed = *call.armed;
    std::uint64_t took = duration(world, task, call, stopped.stop().seen_ns);
    if (armed.handler) {
        handle_return(world, traced, task, call, site.at, took, stopped);
        return;
    }
    count(*armed.counters,
          run_program(world, traced, task, armed, Moment::ret, site.at, stopped, {}, unused, call.captured, took));
    Diversion diversion; // a function's result is set in registers
    if (inject(world, traced, stopped, diversion) && !call.injected) armed.counters->injected++;
    end_returned(world, traced, call);
}

} // namespace

void run_returns(World &world, Traced &traced, Task &task, Site &site, os::Stopped &stopped) {
    VirtAddr frame_sp = stopped.sp() - Host::return_pop;
    Returns &returns = traced.ground->returns;
    while (Instance *call = returns.at(frame_sp)) {
        if (call->frame.return_address != site.at) break;
        if (vanished(traced, task, *call))
            end_unreturned(world, traced, *call);
        else
            finish_call(world, traced, task, site, *call, stopped);
    }
}

void run_exits(World &world, Traced &traced, Task &task, Site &site, os::Stopped &stopped) {
    VirtAddr frame_sp = stopped.sp();
    Returns &returns = traced.ground->returns;
    const bool is_return = site.plan.flow == arch::Flow::ret;
    const Instance *youngest = returns.at(frame_sp);
    if (!youngest || (!is_return && !leaves_unseen(traced, site, *youngest->armed, stopped))) return;
    while (Instance *call = returns.at(frame_sp)) {
        if (call->return_site) break;
        if (is_return)
            finish_call(world, traced, task, site, *call, stopped);
        else
            end_unreturned(world, traced, *call);
    }
}

} // namespace ktrace::trap
