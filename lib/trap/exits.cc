#include "trap/exits.h"

#include <vector>

namespace ktrace::trap {

using arch::Host;

namespace {

constexpr std::int64_t longest_function = 1 << 20; // bytes

/// The addresses of the return instructions in [start, end); nothing where the bytes do not decode from end to end.
std::vector<VirtAddr> return_instructions(Ground &ground, VirtAddr start, VirtAddr end) {
    if (end <= start || end - start > longest_function) return {};
    std::vector<std::byte> code(static_cast<std::size_t>(end - start));
    if (ground.space->read(start, code) != code.size()) return {};
    std::vector<VirtAddr> found;
    for (std::size_t at = 0; at < code.size();) {
        VirtAddr here = start + static_cast<std::int64_t>(at);
        auto plan = Host::plan(std::span(code).subspan(at), here);
        if (plan.length == 0) return {};
        if (plan.flow == arch::Flow::ret) found.push_back(here);
        at += plan.length;
    }
    return found;
}

} // namespace

bool watch_exits(World &world, Traced &traced, Armed &armed, os::Stopped &stopped) {
    if (armed.exits != Armed::Exits::unknown) return armed.exits == Armed::Exits::watched;
    armed.exits = Armed::Exits::unwatchable;
    Ground &ground = *traced.ground;
    std::vector<VirtAddr> returns = return_instructions(ground, armed.function, armed.function_end);
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
        if (!arm(ground, **site)) return false;
        (*site)->exit = true;
    }
    armed.exits = Armed::Exits::watched;
    return true;
}

} // namespace ktrace::trap
