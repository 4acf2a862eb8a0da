#include "trap/calls.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "target/modules.h"
#include "trap/exits.h"
#include "trap/goroutines.h"
#include "trap/handler.h"
#include "trap/roster.h"

namespace ktrace::trap {

using arch::Host;

namespace {

constexpr std::uint32_t most_return_sites = 8192; // kept armed without a call in flight; the oldest goes then

/// As many of the calls in flight a call may have looked at, on average: less than its own stop takes.
constexpr std::uint32_t looks_a_call = 16;

/// The function that the call instruction before the return address leads to: through PLT stubs, 0 where it is
/// indirect.
VirtAddr direct_target(Ground &ground, VirtAddr return_address) {
    std::byte code[16];
    VirtAddr from = return_address - static_cast<std::int64_t>(sizeof code);
    std::size_t got = ground.space->read(from, code);
    if (got != sizeof code) return {};
    auto call = Host::call_before(code, return_address);
    if (!call || !call->target) return {};
    VirtAddr target = *call->target;
    std::byte stub[16];
    got = ground.space->read(target, stub);
    if (auto slot = Host::plt_target_slot(std::span(stub, got), target))
        if (auto bound = ground.space->read_value<std::uint64_t>(*slot)) return VirtAddr{*bound};
    return target;
}

/// Unwinders know a signal frame by the bytes of the trampoline that its handler returns to.
bool is_signal_trampoline(Ground &ground, VirtAddr at) {
    auto trampoline = Host::signal_trampoline();
    std::vector<std::byte> code(trampoline.size());
    return ground.space->read(at, code) == code.size() && std::equal(code.begin(), code.end(), trampoline.begin());
}

/// Only code that comes from a file may be written: a JIT copies, patches and checks its own.
bool is_file_text(Traced &traced, VirtAddr at) {
    auto look = [&] {
        return std::any_of(traced.process.maps.begin(), traced.process.maps.end(), [&](const os::Mapping &m) {
            return m.contains(at) && m.executable && !(m.shared && m.writable) &&
                   (m.path.starts_with('/') || m.path == "[vdso]");
        });
    };
    if (look()) return true;
    auto maps = os::read_maps(traced.process.pid);
    if (!maps) return false;
    traced.process.maps = std::move(*maps);
    return look();
}

bool may_trap_return(Traced &traced, VirtAddr at) {
    Ground &ground = *traced.ground;
    auto [found, is_new] = ground.return_address_ok.try_emplace(at, false);
    if (is_new) found->second = is_file_text(traced, at) && !is_signal_trampoline(ground, at);
    return found->second;
}

/// Where too many return sites wait for calls that do not come, the one that waited longest goes. Its Site and slot
/// stay (a task may be in there, and the next call may return to it); only the trap is taken out.
void drop_oldest_return_site(Ground &ground) {
    Site *oldest = nullptr;
    for (auto &[at, site] : ground.sites)
        if (site->kept_for_returns && site->returns == 0 && (!oldest || site->last_return < oldest->last_return))
            oldest = site.get();
    if (oldest) drop_return_site(ground, *oldest);
}

/// The armed site at a return address; nullptr where none can be had.
Site *return_site(World &world, Traced &traced, VirtAddr at, os::Stopped &stopped) {
    Ground &ground = *traced.ground;
    if (Site *known = ground.site_at(at); known && known->armed) {
        keep_for_returns(ground, *known);
        return known;
    }
    if (!may_trap_return(traced, at)) return nullptr;
    if (ground.return_sites >= most_return_sites) drop_oldest_return_site(ground);
    auto made = make_site(ground, at);
    if (!made || is_in_sequence(traced, **made)) return nullptr;
    Site &site = **made;
    if (!give_slot(ground, site)) {
        constexpr std::size_t batch = 1024;
        auto mapped = map_arena(ground, traced.process, world.waiter, stopped, at, at, batch);
        if (!mapped) {
            log::write("trap", log::Level::warn, "no slots for return addresses: " + mapped.error().message);
            return nullptr;
        }
        if (!give_slot(ground, site)) return nullptr;
    }
    if (!rescue_has_room(ground, 1) &&
        !prepare_rescue(ground, traced.process, world.waiter, stopped, most_return_sites / 4))
        return nullptr;
    tell_of_untold(world.ledger, traced.process.pid, ground, at);
    if (!arm(ground, site)) return nullptr;
    keep_for_returns(ground, site);
    return &site;
}

/// True where the task's exceptions and longjmps since the call began, or another's, are not known to be none.
bool may_have_unwound(const Task &task, const Instance &call) {
    return call.owner != task.tid || call.unwinds != task.unwinds;
}

/// What becomes of older calls whose frame is where the new one's is. True: go on with the new call.
void settle_collisions(World &world, Traced &traced, Task &task, Site &site, const arch::Frame &frame) {
    Ground &ground = *traced.ground;
    std::optional<VirtAddr> target;
    while (Instance *older = ground.returns.at(frame.sp)) {
        if (!target) {
            bool certain = older->hit == world.stops || older->frame.return_address != frame.return_address;
            target = certain ? VirtAddr{} : direct_target(ground, frame.return_address);
        }
        bool unwound = may_have_unwound(task, *older);
        if (judge_collision(*older, site, world.stops, frame.return_address, *target, unwound) != Collision::abandoned)
            return;
        end_unreturned(world, traced, *older);
    }
}

/// Calls of this task whose frames lie below the stack pointer and have been overwritten are over.
void drop_dead_calls(World &world, Traced &traced, Task &task, VirtAddr sp) {
    while (task.calls && task.calls->frame.sp < sp) {
        auto now = traced.ground->space->read_value<std::uint64_t>(task.calls->frame.sp);
        if (now && *now == task.calls->frame.return_address.value) return; // a fiber that waits, perhaps
        end_unreturned(world, traced, *task.calls);
    }
}

/// With no free instance: calls that an exception or a longjmp ended may still hold one. To look at all of them at each
/// call that finds none free would make a recursion deeper than maxactive some hundred times as slow.
void reclaim(World &world, Traced &traced, Armed &armed) {
    if (armed.looks < armed.active) return;
    armed.looks = 0;
    for (Instance *call : traced.ground->returns.all()) {
        if (call->armed != &armed || is_moving(*call)) continue;
        auto now = traced.ground->space->read_value<std::uint64_t>(call->frame.sp);
        if (now && *now == call->frame.return_address.value) continue;
        end_unreturned(world, traced, *call);
    }
}

/// The thread that ends a call need not be the one that began it (fibers, goroutines).
void end_call(World &world, Traced &traced, Instance &call) {
    Ground &ground = *traced.ground;
    call.armed->active--;
    if (Site *site = call.return_site; site && --site->returns == 0 && ground.return_probes == 0)
        drop_return_site(ground, *site);
    auto owner = world.tasks.find(call.owner.value);
    ground.returns.end(call, owner == world.tasks.end() ? nullptr : &owner->second);
}

/// There is no room for a call, or no way to see its end.
Instance *miss(Armed &armed) {
    armed.counters->missed++;
    if (armed.handler) armed.handler->missed();
    return nullptr;
}

} // namespace

bool is_in_sequence(Traced &traced, const Site &site) {
    const target::LoadedModule *loaded = target::module_at(traced.process.modules, site.at);
    return loaded && loaded->module->in_sequence(site.at.value - loaded->bias, site.plan.length);
}

Instance *begin_call(World &world, Traced &traced, Task &task, Armed &armed, Site &site, os::Stopped &stopped,
                     std::vector<std::byte> captured) {
    Ground &ground = *traced.ground;
    auto return_address = Host::return_address(stopped.registers(), *ground.space);
    if (!return_address) return miss(armed);
    arch::Frame frame = Host::frame(stopped.registers(), *return_address);
    drop_dead_calls(world, traced, task, frame.sp);
    settle_collisions(world, traced, task, site, frame);
    armed.looks = std::min(armed.looks + looks_a_call, std::max(armed.active, armed.maxactive));
    if (armed.active >= armed.maxactive) reclaim(world, traced, armed);
    if (armed.active >= armed.maxactive) return miss(armed);
    Site *returns_to = return_site(world, traced, *return_address, stopped);
    if (!returns_to && !watch_exits(world, traced, armed, stopped)) return miss(armed);
    Instance &call = ground.returns.begin(task, frame);
    call.armed = &armed;
    call.site = &site;
    call.return_site = returns_to;
    call.hit = world.stops;
    call.captured = std::move(captured);
    begin_recording(world, task, armed);
    armed.active++;
    if (!returns_to) return &call;
    returns_to->returns++;
    returns_to->last_return = world.stops;
    return &call;
}

void adopt_call(World &world, Traced &traced, Task &task, Armed &armed, Site &site, os::Stopped &stopped,
                const arch::Frame &frame) {
    Site *returns_to = return_site(world, traced, frame.return_address, stopped);
    if (!returns_to && !watch_exits(world, traced, armed, stopped)) return;
    Instance &call = traced.ground->returns.begin(task, frame);
    call.armed = &armed;
    call.site = &site;
    call.return_site = returns_to;
    call.hit = world.stops;
    armed.active++;
    if (!returns_to) return;
    returns_to->returns++;
    returns_to->last_return = world.stops;
}

void end_returned(World &world, Traced &traced, Instance &call) { end_call(world, traced, call); }

void end_unreturned(World &world, Traced &traced, Instance &call) {
    call.armed->counters->unreturned++;
    if (call.armed->handler && call.handler_call) call.armed->handler->dropped(*call.handler_call);
    end_call(world, traced, call);
}

bool vanished(Traced &traced, const Task &task, const Instance &call) {
    if (!may_have_unwound(task, call)) return false;
    auto now = traced.ground->space->read_value<std::uint64_t>(call.frame.sp);
    return !now || *now != call.frame.return_address.value;
}

void end_all(World &world, Traced &traced) {
    for (Instance *call : traced.ground->returns.all()) {
        end_unreturned(world, traced, *call);
    }
}

} // namespace ktrace::trap
