#include "upgrade/counts.h"

#include "engine/space/jumps.h"
#include "program/tables/state.h"

namespace ktrace::upgrade {

void take_counts(trace::Trace &trace) {
    for (const auto &jumps : trace.engine.jumps) {
        std::map<const engine::CounterBlock *, std::vector<std::uint64_t>> sums;
        for (const engine::JumpArea &area : jumps->areas) sums[area.block.get()] = area.block->sums();
        for (const auto &[at, jump] : jumps->at) {
            const auto found = sums.find(jump->block.get());
            if (found == sums.end() || jump->counter >= found->second.size()) continue;
            const std::uint64_t sum = found->second[jump->counter];
            const std::uint64_t hits = sum - jump->undone - jump->taken;
            // A thread that was just taken out of its stub may not come again before the next look.
            if (static_cast<std::int64_t>(hits) <= 0) continue;
            jump->taken += hits;
            for (const engine::Credit &credit : jump->credits) {
                credit.counters->hits += hits;
                credit.counters->events += hits;
                credit.state->aggregation.add_hits(hits, 0);
            }
        }
    }
    std::erase_if(trace.engine.jumps, [](const auto &jumps) { return jumps.use_count() == 1; });
}

} // namespace ktrace::upgrade
