#include "engine/calls/calls.h"
#include "engine/calls/timing.h"

#include <algorithm>

#include "engine/calls/caller.h"
#include "engine/calls/consumers.h"
#include "engine/calls/doubtful_calls.h"
#include "engine/calls/exits.h"
#include "engine/calls/goroutines.h"
#include "engine/eval/hit_handler.h"

namespace ktrace::engine {

using arch::Host;

namespace {

constexpr std::uint32_t most_return_sites = 8192; // kept armed without a call in flight; the oldest goes then

/// A call may have so many of the calls in flight checked, on average: that takes less than its own stop.
constexpr std::uint32_t looks_a_call = 16;

/// Where too many return sites have no call in flight, the trap of the one that was used least recently is taken out.
/// Its Site and slot stay: a task may be in the slot, and the next call may return to it.
void drop_oldest_return_site(AddressSpaceState &space) {
    Site *oldest = nullptr;
    for (auto &[at, site] : space.sites)
        if (site->kept_for_returns && site->returns == 0 && (!oldest || site->last_return < oldest->last_return))
            oldest = site.get();
    if (oldest) drop_return_site(space, *oldest);
}

/// The armed site at a return address; nullptr where none can be had.
Site *return_site(Engine &engine, Process &process, VirtAddr at, os::Stopped &stopped) {
    AddressSpaceState &space = *process.space;
    const Site *known = space.site_at(at);
    const bool is_new = !known || !known->armed;
    if (is_new && space.return_sites >= most_return_sites) {
        if (space.threads) return nullptr; // calls of the agent may return to any
        drop_oldest_return_site(space);
    }
    Site *site = trap_caller(engine, process, at, stopped);
    if (site) keep_for_returns(space, *site);
    return site;
}

/// True unless it is known that there was no unwinding since the call began, in this task or another one.
bool may_have_unwound(const Task &task, const Instance &call) {
    return call.owner != task.tid || call.unwinds != task.calls.unwinds;
}

/// Ends older calls with the new one's frame that an exception or a longjmp has ended.
void settle_collisions(Engine &engine, Process &process, Task &task, Site &site, const arch::Frame &frame) {
    AddressSpaceState &space = *process.space;
    std::optional<VirtAddr> target;
    while (Instance *older = space.returns.at(frame.sp)) {
        if (!target) {
            bool certain = older->hit == engine.stops || older->frame.return_address != frame.return_address;
            target = certain ? VirtAddr{} : direct_target(space, frame.return_address);
        }
        bool unwound = may_have_unwound(task, *older);
        if (judge_collision(*older, site, engine.stops, frame.return_address, *target, unwound) != Collision::abandoned)
            return;
        end_unreturned(engine, process, *older);
    }
}

/// Ends the calls of this task whose frames lie below the stack pointer and have been overwritten. Others are those of
/// waiting fibers.
void drop_dead_calls(Engine &engine, Process &process, Task &task, VirtAddr sp) {
    while (task.calls.youngest && task.calls.youngest->frame.sp < sp) {
        if (Host::is_on_stack(task.calls.youngest->frame, *process.space->memory)) return;
        end_unreturned(engine, process, *task.calls.youngest);
    }
}

/// True unless a call that its owner may just have begun has its return address in a register, where none can see it.
bool can_be_seen(const Engine &engine, const Instance &call) {
    if (Host::return_pop != 0) return true;
    const auto owner = engine.tasks.find(call.owner.value);
    return owner == engine.tasks.end() || owner->second.calls.unwinds != call.unwinds;
}

/// With no free instance: calls that an exception or a longjmp has ended may still hold one. Checking all of them at
/// each call would make a recursion deeper than maxactive some hundred times slower.
void reclaim(Engine &engine, Process &process, Attachment &attachment) {
    if (attachment.looks < attachment.active) return;
    attachment.looks = 0;
    for (Instance *call : process.space->returns.all()) {
        if (call->attachment != &attachment || is_moving(*call)) continue;
        if (!can_be_seen(engine, *call) || Host::is_on_stack(call->frame, *process.space->memory)) continue;
        end_unreturned(engine, process, *call);
    }
}

/// A call of the probe's begins (1) or ends (-1).
void count_call(AddressSpaceState &space, Attachment &attachment, int more) {
    attachment.active += static_cast<std::uint32_t>(more);
    if (attachment.encloses != 0) space.enclosing_calls[attachment.encloses] += more;
}

/// Ends a call. It may have begun in another thread (fibers, goroutines).
void end_call(Engine &engine, Process &process, Instance &call) {
    AddressSpaceState &space = *process.space;
    count_call(space, *call.attachment, -1);
    forget_doubt(space, call);
    if (Site *site = call.return_site; site && --site->returns == 0 && space.return_probes == 0 && !space.threads)
        drop_return_site(space, *site);
    auto owner = engine.tasks.find(call.owner.value);
    space.returns.end(call, owner == engine.tasks.end() ? nullptr : &owner->second);
}

/// Counts a call as missed: there is no room for it.
Instance *miss(Attachment &attachment) {
    attachment.counters->missed++;
    if (attachment.handler) attachment.handler->missed();
    return nullptr;
}

/// The same of one whose end cannot be seen.
Instance *miss_unfollowed(Attachment &attachment) {
    attachment.counters->unfollowed++;
    return miss(attachment);
}

} // namespace

Instance *begin_call(Engine &engine, Process &process, Task &task, Attachment &attachment, Site &site,
                     os::Stopped &stopped, std::vector<std::byte> captured) {
    AddressSpaceState &space = *process.space;
    auto return_address = Host::return_address(stopped.registers(), *space.memory);
    if (!return_address) return miss_unfollowed(attachment);
    arch::Frame frame = Host::frame(stopped.registers(), *return_address);
    drop_dead_calls(engine, process, task, frame.sp);
    settle_collisions(engine, process, task, site, frame);
    attachment.looks = std::min(attachment.looks + looks_a_call, std::max(attachment.active, attachment.maxactive));
    if (attachment.active >= attachment.maxactive) reclaim(engine, process, attachment);
    if (attachment.active >= attachment.maxactive) return miss(attachment);
    Site *returns_to = return_site(engine, process, *return_address, stopped);
    if (!returns_to && !watch_exits(engine, process, attachment, stopped)) return miss_unfollowed(attachment);
    Instance &call = space.returns.begin(task, frame);
    call.attachment = &attachment;
    call.site = &site;
    call.return_site = returns_to;
    call.hit = engine.stops;
    call.captured = std::move(captured);
    begin_recording(engine, task, attachment);
    count_call(space, attachment, 1);
    if (!returns_to) return &call;
    returns_to->returns++;
    returns_to->last_return = engine.stops;
    return &call;
}

void pass_call(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped) {
    if (!process.space->returns.at(stopped.sp())) return;
    if (auto return_address = Host::return_address(stopped.registers(), *process.space->memory))
        settle_collisions(engine, process, task, site, Host::frame(stopped.registers(), *return_address));
}

void adopt_call(Engine &engine, Process &process, Task &task, Attachment &attachment, Site &site, os::Stopped &stopped,
                const arch::Frame &frame) {
    Site *returns_to = return_site(engine, process, frame.return_address, stopped);
    if (!returns_to && !watch_exits(engine, process, attachment, stopped)) return;
    Instance &call = process.space->returns.begin(task, frame);
    call.attachment = &attachment;
    call.site = &site;
    call.return_site = returns_to;
    call.hit = engine.stops;
    count_call(*process.space, attachment, 1);
    if (!returns_to) return;
    returns_to->returns++;
    returns_to->last_return = engine.stops;
}

void end_returned(Engine &engine, Process &process, Instance &call) { end_call(engine, process, call); }

void end_unreturned(Engine &engine, Process &process, Instance &call) {
    call.attachment->counters->unreturned++;
    if (call.attachment->handler && call.handler_call) call.attachment->handler->dropped(*call.handler_call);
    end_call(engine, process, call);
}

void end_left(Engine &engine, Process &process, Instance &call) {
    call.attachment->counters->left++;
    end_unreturned(engine, process, call);
}

void end_unfinished(Engine &engine, Process &process, Instance &call) {
    program::Counters &counters = *call.attachment->counters;
    (engine.closing ? counters.in_flight : counters.ended)++;
    end_unreturned(engine, process, call);
}

bool vanished(Process &process, const Task &task, const Instance &call, os::Stopped &stopped) {
    return may_have_unwound(task, call) && !Host::has_returned(stopped.registers(), call.frame, *process.space->memory);
}

void end_all(Engine &engine, Process &process) {
    for (Instance *call : process.space->returns.all()) end_unfinished(engine, process, *call);
}

} // namespace ktrace::engine
