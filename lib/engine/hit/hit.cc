#include "engine/hit/hit.h"

#include "engine/agent/agent_calls.h"
#include "engine/calls/calls.h"
#include "engine/calls/exits.h"
#include "engine/calls/inside.h"
#include "engine/calls/jump_back.h"
#include "engine/calls/timing.h"
#include "engine/eval/evaluation.h"
#include "engine/eval/inject.h"
#include "engine/hit/hit_callbacks.h"

namespace ktrace::engine {

using arch::Host;
using program::Moment;
using program::Outcome;

namespace {

void run_internal(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped) {
    if (engine.closing) return;
    for (const InternalBreakpoint *breakpoint : site.internal)
        if (breakpoint->on && breakpoint->purpose->at_hit)
            breakpoint->purpose->at_hit(engine, process, task, site, stopped);
}

/// Of a whole call, not of the instruction alone.
bool is_of_call(const Attachment &attachment) {
    return attachment.kind == Attachment::Kind::entry || attachment.kind == Attachment::Kind::ret;
}

} // namespace

Follows run_pre(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped) {
    Follows follows;
    Diversion diversion;
    std::size_t unused = 0;
    const bool same_call = take_jump_back(task, site, stopped);
    for (std::size_t i = 0; i < site.attachments.size(); i++) {
        Attachment *attachment = site.attachments[i];
        if (engine.closing) break;
        if (!attachment->on || (same_call && is_of_call(*attachment))) continue;
        if (engine.overhead && attachment->counters) engine.overhead->charge(attachment->location);
        if (attachment->inside != 0 && !is_inside(engine, process, task, attachment->inside, site.at, stopped)) {
            attachment->counters->hits++;
            attachment->counters->filtered++;
            if (attachment->kind == Attachment::Kind::ret) pass_call(engine, process, task, site, stopped);
            continue;
        }
        if (attachment->handler) {
            Handled handled = handle_hit(engine, process, task, *attachment, site, stopped);
            if (handled.post) follows.post.add(i);
            follows.pc_is_set = handled.pc_is_set;
            if (follows.pc_is_set) break; // as kprobes: the others do not see this hit
            continue;
        }
        switch (attachment->kind) {
        case Attachment::Kind::watch: break; // has no site
        case Attachment::Kind::probe:
        case Attachment::Kind::entry: {
            attachment->counters->hits++;
            Moment moment = attachment->kind == Attachment::Kind::probe ? Moment::pre : Moment::entry;
            Outcome outcome =
                run_program(engine, process, task, *attachment, moment, site.at, stopped, {}, unused, {}, nullptr);
            count(*attachment->counters, outcome);
            if (inject(engine, process, stopped, diversion)) attachment->counters->injected++;
            // A hit that was filtered or not selected before the instruction is so after it.
            bool wanted = outcome == Outcome::event && attachment->program->needs(Moment::post).runs;
            if (wanted) follows.post.add(i);
            break;
        }
        case Attachment::Kind::ret: {
            attachment->counters->hits++;
            if (attachment->encloses != 0) {
                enter_enclosing(engine, process, task, *attachment, site, stopped);
                break;
            }
            std::vector<std::byte> capture(attachment->program->capture_size());
            std::size_t captured = 0;
            Outcome outcome = Outcome::accepted;
            engine.changes.clear();
            if (attachment->program->needs(Moment::call).runs)
                outcome = run_program(engine, process, task, *attachment, Moment::call, site.at, stopped, capture,
                                      captured, {}, nullptr);
            count(*attachment->counters, outcome);
            if (outcome != Outcome::accepted) {
                pass_call(engine, process, task, site, stopped);
                break;
            }
            capture.resize(captured);
            Instance *call = begin_call(engine, process, task, *attachment, site, stopped, std::move(capture));
            if (!call) break; // missed: it runs untouched
            call->is_within = has_agent_call(process, task, *attachment);
            call->injected = inject(engine, process, stopped, diversion);
            if (call->injected) attachment->counters->injected++;
            break;
        }
        }
    }
    if (!follows.pc_is_set) run_internal(engine, process, task, site, stopped);
    // All probes have seen the hit, with the calls that begin with it.
    if (diversion.skips) diversion.moved = skip_function(process, site.at, stopped) || diversion.moved;
    follows.pc_is_set = follows.pc_is_set || diversion.moved;
    return follows;
}

void run_post(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped, const Places &wanted) {
    wanted.for_each([&](std::size_t place) {
        Attachment &attachment = *site.attachments[place];
        if (engine.closing || !attachment.on) return;
        if (engine.overhead) engine.overhead->charge(attachment.location);
        if (attachment.handler) {
            handle_post(process, task, attachment, site, stopped);
            return;
        }
        std::size_t unused = 0;
        run_program(engine, process, task, attachment, Moment::post, stopped.pc(), stopped, {}, unused, {}, nullptr);
    });
}

namespace {

void finish_call(Engine &engine, Process &process, Task &task, const Site &site, Instance &call, os::Stopped &stopped) {
    if (engine.closing) {
        end_unfinished(engine, process, call);
        return;
    }
    if (engine.overhead) engine.overhead->charge(call.attachment->location);
    if (call.attachment->encloses != 0) {
        end_returned(engine, process, call);
        return;
    }
    std::size_t unused = 0;
    Attachment &attachment = *call.attachment;
    const program::Duration took = duration(engine, task, call, stopped.stop().seen_ns);
    if (attachment.handler) {
        add_to_caller(call, took.ns);
        handle_return(engine, process, task, call, site.at, took.ns, stopped);
        return;
    }
    const Outcome outcome =
        run_program(engine, process, task, attachment, Moment::ret, site.at, stopped, {}, unused, call.captured, &took);
    count(*attachment.counters, outcome);
    if (outcome != Outcome::filtered && !add_to_agent_caller(engine, process, task, call, took.ns))
        add_to_caller(call, took.ns);
    Diversion diversion; // a function's result is set in registers
    if (inject(engine, process, stopped, diversion) && !call.injected) attachment.counters->injected++;
    end_returned(engine, process, call);
}

} // namespace

void run_returns(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped) {
    VirtAddr frame_sp = stopped.sp() - Host::return_pop;
    Returns &returns = process.space->returns;
    while (Instance *call = returns.at(frame_sp)) {
        if (call->frame.return_address != site.at) break;
        if (vanished(process, task, *call, stopped))
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
    if (!youngest || (!is_return && !leaves_unseen(process, site, *youngest->attachment, stopped))) return;
    while (Instance *call = returns.at(frame_sp)) {
        if (call->return_site) break;
        if (is_return)
            finish_call(engine, process, task, site, *call, stopped);
        else
            end_left(engine, process, *call);
    }
}

} // namespace ktrace::engine
