#include "engine/space/jumps.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/space/address_space_state.h"
#include "os/self/processors.h"

namespace ktrace::engine {

using arch::Host;
using State = Jump::State;

const InternalPurpose jump_boundary;

std::vector<std::uint64_t> CounterBlock::sums() const {
    std::vector<std::uint64_t> all(used), row(used);
    for (std::size_t i = 0; i < arch::counter_rows && used != 0; i++) {
        const std::size_t bytes = used * sizeof row[0];
        const auto got = ::pread(file.get(), row.data(), bytes, static_cast<off_t>(i * arch::counter_row_size));
        if (got != static_cast<ssize_t>(bytes)) continue;
        for (std::size_t n = 0; n < used; n++) all[n] += row[n];
    }
    return all;
}

bool Jump::is_for(program::Moment moment) const {
    return std::ranges::find(runs, moment, &AgentRun::moment) != runs.end();
}

Jump *Jumps::with(VirtAddr pc) const {
    auto in = [pc](const std::map<VirtAddr, Jump *> &places, auto &&size_of) -> Jump * {
        auto behind = places.upper_bound(pc);
        if (behind == places.begin()) return nullptr;
        const auto &[start, jump] = *std::prev(behind);
        return pc < start + static_cast<std::int64_t>(size_of(*jump)) ? jump : nullptr;
    };
    if (Jump *jump = in(by_stub, [](const Jump &each) { return each.stub.bytes.size(); })) return jump;
    return in(by_landing, [](const Jump &) { return arch::HostDetour::jump_size; });
}

const JumpArea *Jumps::with_agent_at(VirtAddr pc) const {
    const auto found = std::ranges::find_if(
        areas, [pc](const JumpArea &each) { return each.has_agent() && each.agent <= pc && pc < each.site_codes; });
    return found == areas.end() ? nullptr : &*found;
}

Jump *Jumps::over(VirtAddr place) const {
    // Nearer ones may be lifted.
    for (auto each = at.upper_bound(place); each != at.begin();) {
        --each;
        if (each->first + static_cast<std::int64_t>(arch::HostDetour::longest_window) <= place) break;
        if (place < each->second->end() && each->second->state != State::lifted) return each->second.get();
    }
    return nullptr;
}

bool Jumps::is_on(VirtAddr site) const {
    auto found = at.find(site);
    return found != at.end() && found->second->state == State::on;
}

bool Jumps::sees_returns(VirtAddr site) const {
    const auto found = at.find(site);
    return found != at.end() && found->second->state != State::lifted && found->second->is_for(program::Moment::ret);
}

namespace {

struct Run {
    std::size_t offset = 0, size = 0;
};

/// The parts of a jump behind the bytes of the site's trap that are on no inner boundary.
std::vector<Run> tail_of(const Jump &jump) {
    std::vector<Run> runs;
    auto is_inner = [&](std::size_t offset) {
        return std::ranges::any_of(jump.window.inner,
                                   [&](const arch::Boundary &each) { return each.offset == offset; });
    };
    for (std::size_t offset = Host::trap_bytes().size(); offset < jump.bytes.size(); offset++) {
        if (is_inner(offset)) continue;
        if (!runs.empty() && runs.back().offset + runs.back().size == offset)
            runs.back().size++;
        else
            runs.push_back({offset, 1});
    }
    return runs;
}

VirtAddr place_of(const Jump &jump, const Run &run) { return jump.at + static_cast<std::int64_t>(run.offset); }

void take_tail_out(target::AddressSpace &memory, const Jump &jump) {
    for (const Run &run : tail_of(jump)) memory.unplant(place_of(jump, run));
}

/// Where the kernel does not do it, a thread would have to be within a few instructions of the place just now; no jump
/// is planted there in the first place.
void synchronize() {
    if (!os::synchronize_processors()) KT_LOG_INFO("processors cannot be synchronized: membarrier(2) is refused");
}

} // namespace

bool plant_tail(AddressSpaceState &space, Jump &jump) {
    for (const Run &run : tail_of(jump))
        if (!space.memory->plant(place_of(jump, run), std::span(jump.bytes).subspan(run.offset, run.size))) {
            take_tail_out(*space.memory, jump);
            jump.state = State::lifted;
            return false;
        }
    jump.state = State::tailed;
    return true;
}

bool plant_head(AddressSpaceState &space, Jump &jump) {
    if (!space.memory->replant(jump.at, std::span(jump.bytes).first(Host::trap_bytes().size()))) return false;
    jump.state = State::on;
    return true;
}

void give_way(AddressSpaceState &space, VirtAddr at) {
    if (!space.jumps || space.jumps->plants_boundaries) return;
    if (Jump *over = space.jumps->over(at)) lift(space, std::span(&over, 1));
}

void lift(AddressSpaceState &space, std::span<Jump *const> jumps) {
    std::vector<Jump *> planted;
    for (Jump *jump : jumps) {
        const State was = std::exchange(jump->state, State::lifted);
        if (was != State::tailed && was != State::on) continue;
        if (was == State::on) space.memory->replant(jump->at, Host::trap_bytes());
        planted.push_back(jump);
    }
    if (planted.empty()) return;
    space.has_new_probes = true; // boundaries are idle now
    synchronize();
    for (const Jump *jump : planted) take_tail_out(*space.memory, *jump);
    synchronize();
    if (!space.recovery.is_there(*space.memory)) return;
    for (const Jump *jump : planted)
        if (const Site *site = space.site_at(jump->at)) list_in_recovery(space, *site);
}

void lift_all(AddressSpaceState &space) {
    if (!space.jumps) return;
    std::vector<Jump *> all;
    for (const auto &[at, jump] : space.jumps->at) all.push_back(jump.get());
    lift(space, all);
}

void do_without_jumps(AddressSpaceState &space, const char *why) {
    space.why_no_jumps = why;
    lift_all(space);
}

void lift_copies(const AddressSpaceState &from, target::AddressSpace &child) {
    if (!from.jumps) return;
    for (const auto &[at, jump] : from.jumps->at) {
        take_tail_out(child, *jump);
        if (child.planted(at)) child.replant(at, Host::trap_bytes());
    }
}

void forget_jumps(AddressSpaceState &space, VirtAddr start, VirtAddr end) {
    if (!space.jumps) return;
    for (const auto &[at, jump] : space.jumps->at) {
        if (at < start || end <= at) continue;
        if (jump->state == State::tailed || jump->state == State::on)
            for (const Run &run : tail_of(*jump)) space.memory->forget(place_of(*jump, run));
        jump->state = State::lifted;
    }
    std::erase_if(space.jumps->refused, [&](const auto &each) { return start <= each.first && each.first < end; });
}

} // namespace ktrace::engine
