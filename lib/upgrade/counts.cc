#include "upgrade/counts.h"

#include "engine/agent/agent_records.h"
#include "engine/space/jumps.h"
#include "program/tables/state.h"

namespace ktrace::upgrade {

namespace {

/// The hits that a counter has counted since the last look. A thread that was just taken out of its stub may not come
/// again before the next one.
std::uint64_t take(std::uint64_t sum, std::uint64_t undone, std::uint64_t &taken) {
    const std::uint64_t more = sum - undone - taken;
    if (static_cast<std::int64_t>(more) <= 0) return 0;
    taken += more;
    return more;
}

void take_counts_of(engine::Jump &jump, const std::vector<std::uint64_t> &sums) {
    if (jump.counter + (jump.run ? 1 : 0) >= sums.size()) return;
    const std::uint64_t hits = take(sums[jump.counter], jump.undone, jump.taken);
    const std::uint64_t dropped = jump.run ? take(sums[jump.counter + 1], jump.undone_dropped, jump.taken_dropped) : 0;
    for (const engine::Credit &credit : jump.credits) {
        credit.counters->hits += hits + dropped;
        credit.counters->dropped += dropped;
        if (jump.run) {
            credit.counters->filtered += hits;
        } else {
            credit.counters->events += hits;
            credit.state->aggregation.add_hits(hits, 0);
        }
    }
}

} // namespace

void take_counts(trace::Trace &trace) {
    engine::take_all_records(trace.engine);
    for (const auto &jumps : trace.engine.jumps) {
        std::map<const engine::CounterBlock *, std::vector<std::uint64_t>> sums;
        for (const engine::JumpArea &area : jumps->areas) sums[area.block.get()] = area.block->sums();
        auto take = [&](engine::Jump &jump) {
            const auto found = sums.find(jump.block.get());
            if (found != sums.end()) take_counts_of(jump, found->second);
        };
        for (const auto &[at, jump] : jumps->at) take(*jump);
        for (const auto &jump : jumps->former) take(*jump);
    }
    std::erase_if(trace.engine.jumps, [](const auto &jumps) { return jumps.use_count() == 1; });
}

} // namespace ktrace::upgrade
