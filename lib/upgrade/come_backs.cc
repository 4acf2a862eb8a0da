#include "upgrade/come_backs.h"

#include <algorithm>

#include "base/clock.h"

namespace ktrace::upgrade {

using engine::AddressSpaceState;
using engine::Jump;

namespace {

constexpr std::uint64_t enough_stops = 64, longest_look_ns = 20'000'000;
constexpr std::uint64_t least_saving = 4; // stops at the site for one at a boundary

bool may_be_come_back_to(const Jump &jump) { return std::ranges::any_of(jump.window.inner, &arch::Boundary::target); }

std::uint64_t stops_at(AddressSpaceState &space, VirtAddr at) {
    const engine::Site *site = space.site_at(at);
    return site ? site->stops : 0;
}

template <class F> void for_come_back_places(const Jump &jump, F &&each) {
    for (const arch::Boundary &boundary : jump.window.inner)
        if (boundary.target) each(jump.at + boundary.offset);
}

std::uint64_t stops_at_boundaries(AddressSpaceState &space, const Jump &jump) {
    std::uint64_t stops = 0;
    for_come_back_places(jump, [&](VirtAddr at) { stops += stops_at(space, at); });
    return stops;
}

} // namespace

void ComeBacks::begin(AddressSpaceState &space, const std::vector<Jump *> &jumps) {
    before_.clear();
    end_ns_ = monotonic_ns() + longest_look_ns;
    for (const Jump *jump : jumps)
        if (may_be_come_back_to(*jump)) before_[jump] = {stops_at(space, jump->at), stops_at_boundaries(space, *jump)};
}

ComeBacks::Stops ComeBacks::since_begin(AddressSpaceState &space, const Jump &jump) const {
    const Stops &before = before_.at(&jump);
    const auto more = [](std::uint64_t now, std::uint64_t then) { return now - std::min(now, then); };
    Stops stops{more(stops_at(space, jump.at), before.at_site), 0};
    stops.at_boundaries = more(stops_at_boundaries(space, jump), before.at_boundaries);
    // From the site's own trap a task goes on to each boundary.
    for_come_back_places(jump, [&](VirtAddr) { stops.at_boundaries = more(stops.at_boundaries, stops.at_site); });
    return stops;
}

bool ComeBacks::are_known(AddressSpaceState &space) const {
    if (before_.empty() || monotonic_ns() >= end_ns_) return true;
    return std::ranges::all_of(before_, [&](const auto &each) {
        const Stops stops = since_begin(space, *each.first);
        return stops.at_site + stops.at_boundaries >= enough_stops;
    });
}

bool ComeBacks::are_few(AddressSpaceState &space, const Jump &jump) const {
    if (!before_.contains(&jump)) return true;
    const Stops stops = since_begin(space, jump);
    return stops.at_boundaries * least_saving <= stops.at_site;
}

void count_come_backs_from_now(AddressSpaceState &space, Jump &jump) {
    if (may_be_come_back_to(jump)) jump.come_backs_before = stops_at_boundaries(space, jump);
}

std::vector<Jump *> often_come_back_to(AddressSpaceState &space) {
    std::vector<Jump *> often;
    for (const auto &[at, jump] : space.jumps->at) {
        if (jump->state != Jump::State::on || !may_be_come_back_to(*jump)) continue;
        if (stops_at_boundaries(space, *jump) < jump->come_backs_before + jump->most_come_backs) continue;
        jump->most_come_backs *= 2;
        often.push_back(jump.get());
    }
    return often;
}

} // namespace ktrace::upgrade
