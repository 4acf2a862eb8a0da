#include "upgrade/overwritten.h"

#include "base/clock.h"
#include "engine/space/address_space_state.h"

namespace ktrace::upgrade {

using engine::AddressSpaceState;
using engine::Jump;

namespace {

std::vector<Jump *> overwritten_in(AddressSpaceState &space) {
    std::vector<VirtAddr> heads;
    for (const auto &[at, jump] : space.jumps->at)
        if (jump->state == Jump::State::on) heads.push_back(at);
    std::vector<Jump *> found;
    for (VirtAddr at : space.memory->overwritten(heads)) found.push_back(space.jumps->at.at(at).get());
    return found;
}

/// The trap, where the instruction is as in the file. Elsewhere the other one's is, and takes all hits.
void arm_again(AddressSpaceState &space, const Jump &jump) {
    engine::Site *site = space.site_at(jump.at);
    if (!site) return;
    std::vector<std::byte> now(jump.code.size());
    site->armed = false;
    if (space.memory->read(jump.at, now) == now.size() && now == jump.code) static_cast<void>(arm(space, *site));
}

std::vector<std::uint32_t> lift_in(AddressSpaceState &space) {
    std::vector<std::uint32_t> locations;
    const std::vector<Jump *> jumps = overwritten_in(space);
    engine::lift(space, jumps);
    for (const Jump *jump : jumps) {
        space.jumps->refused[jump->at] = {{}, "something else has written there, a kernel uprobe perhaps"};
        arm_again(space, *jump);
        if (const engine::Site *site = space.site_at(jump->at))
            for (const engine::Attachment *each : site->attachments) locations.push_back(each->location);
    }
    return locations;
}

} // namespace

std::vector<std::uint32_t> Overwritten::lift() {
    if (trace_.engine.jumps.empty() || monotonic_ns() < next_ns_) return {};
    next_ns_ = monotonic_ns() + every_ns;
    waking_.start();
    std::vector<std::uint32_t> locations;
    for (auto &[pid, process] : trace_.engine.processes) {
        if (process->silent || process->borrowed || !process->space->jumps) continue;
        const auto more = lift_in(*process->space);
        locations.insert(locations.end(), more.begin(), more.end());
    }
    return locations;
}

} // namespace ktrace::upgrade
