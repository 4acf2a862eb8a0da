#include "trap/exits.h"

#include <algorithm>
#include <vector>

#include "trap/calls.h"
#include "trap/scan.h"

namespace ktrace::trap {

using arch::Host;

namespace {

bool is_jump(const Host::Plan &plan) { return plan.flow == arch::Flow::jump || plan.flow == arch::Flow::branch; }

bool is_within(const Armed &armed, VirtAddr at) { return armed.function <= at && at < armed.function_end; }

} // namespace

bool watch_exits(World &world, Traced &traced, Armed &armed, os::Stopped &stopped) {
    if (armed.exits != Armed::Exits::unknown) return armed.exits == Armed::Exits::watched;
    armed.exits = Armed::Exits::unwatchable;
    Ground &ground = *traced.ground;
    bool returns = false, is_clear = true;
    std::vector<VirtAddr> exits =
        instructions(*ground.space, armed.function, armed.function_end, [&](const Host::Plan &plan) {
            if (plan.flow == arch::Flow::ret) return returns = true;
            if (!is_jump(plan) || (plan.target && is_within(armed, *plan.target))) return false;
            is_clear = is_clear && plan.method == arch::Method::emulate;
            return true;
        });
    if (!returns || !is_clear) return false;
    if (!rescue_has_room(ground, exits.size()) &&
        !prepare_rescue(ground, traced.process, world.waiter, stopped, exits.size()))
        return false;
    for (VirtAddr at : exits) {
        auto site = make_site(ground, at);
        if (!site || is_in_sequence(traced, **site)) return false;
        if (!give_slot(ground, **site)) {
            auto mapped = map_arena(ground, traced.process, world.waiter, stopped, armed.function, armed.function_end,
                                    exits.size());
            if (!mapped || !give_slot(ground, **site)) return false;
        }
        tell_of_untold(world.ledger, traced.process.pid, ground, at);
        if (!arm(ground, **site)) return false;
        (*site)->exit = true;
    }
    armed.exits = Armed::Exits::watched;
    return true;
}

bool leaves_unseen(Traced &traced, const Site &site, const Armed &armed, os::Stopped &stopped) {
    Host::Registers registers = stopped.registers();
    auto done = Host::emulate(site.plan, site.at, registers, *traced.ground->space);
    if (done.outcome != arch::Emulated::Outcome::done) return false; // it faults there, in the function
    VirtAddr to = Host::pc(registers);
    if (is_within(armed, to)) return false;
    const Site *next = traced.ground->site_at(to);
    return !next || std::none_of(next->probes.begin(), next->probes.end(),
                                 [](const Armed *other) { return other->on && other->kind == Armed::Kind::ret; });
}

} // namespace ktrace::trap
