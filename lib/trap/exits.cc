#include "trap/exits.h"

#include <vector>

#include "trap/scan.h"

namespace ktrace::trap {

using arch::Host;

bool watch_exits(World &world, Traced &traced, Armed &armed, os::Stopped &stopped) {
    if (armed.exits != Armed::Exits::unknown) return armed.exits == Armed::Exits::watched;
    armed.exits = Armed::Exits::unwatchable;
    Ground &ground = *traced.ground;
    std::vector<VirtAddr> returns = instructions(*ground.space, armed.function, armed.function_end,
                                                 [](const Host::Plan &plan) { return plan.flow == arch::Flow::ret; });
    if (returns.empty()) return false;
    if (!rescue_has_room(ground, returns.size()) &&
        !prepare_rescue(ground, traced.process, world.waiter, stopped, returns.size()))
        return false;
    for (VirtAddr at : returns) {
        auto site = make_site(ground, at);
        if (!site) return false;
        if (!give_slot(ground, **site)) {
            auto mapped = map_arena(ground, traced.process, world.waiter, stopped, armed.function, armed.function_end,
                                    returns.size());
            if (!mapped || !give_slot(ground, **site)) return false;
        }
        tell_of_untold(world.ledger, traced.process.pid, ground, at);
        if (!arm(ground, **site)) return false;
        (*site)->exit = true;
    }
    armed.exits = Armed::Exits::watched;
    return true;
}

} // namespace ktrace::trap
