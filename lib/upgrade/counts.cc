#include "upgrade/counts.h"

#include "engine/agent/agent_calls.h"
#include "engine/agent/agent_records.h"
#include "engine/space/jumps.h"
#include "program/tables/state.h"

namespace ktrace::upgrade {

namespace {

/// The hits that a counter has counted since the last look. A thread that was just taken out of its stub may not come
/// again before the next one: that hit is taken back where the counter is a former jump's, and counts no more.
std::int64_t take(std::uint64_t sum, std::uint64_t undone, std::uint64_t &taken, bool is_former) {
    const auto more = static_cast<std::int64_t>(sum - undone - taken);
    if (more < 0 && !is_former) return 0;
    taken += static_cast<std::uint64_t>(more);
    return more;
}

void take_counts_of(engine::Jump &jump, const std::vector<std::uint64_t> &sums, bool is_former) {
    if (jump.counter + (jump.has_runs() ? 1 : 0) >= sums.size()) return;
    const std::int64_t hits = take(sums[jump.counter], jump.undone, jump.taken, is_former);
    const std::int64_t dropped =
        jump.has_runs() ? take(sums[jump.counter + 1], jump.undone_dropped, jump.taken_dropped, is_former) : 0;
    const auto add = [](std::uint64_t &sum, std::int64_t more) { sum += static_cast<std::uint64_t>(more); };
    for (const engine::Credit &credit : jump.credits) {
        add(credit.counters->hits, hits + dropped);
        add(credit.counters->dropped, dropped);
        add(jump.has_runs() ? credit.counters->filtered : credit.counters->events, hits);
        if (!jump.has_runs()) credit.state->aggregation.add_hits(hits, 0);
    }
}

} // namespace

void take_counts(trace::Trace &trace) {
    engine::take_all_records(trace.engine);
    engine::count_lost_calls(trace.engine);
    for (const auto &jumps : trace.engine.jumps) {
        std::map<const engine::CounterBlock *, std::vector<std::uint64_t>> sums;
        for (const engine::JumpArea &area : jumps->areas) sums[area.block.get()] = area.block->sums();
        auto take = [&](engine::Jump &jump, bool is_former) {
            const auto found = sums.find(jump.block.get());
            if (found != sums.end()) take_counts_of(jump, found->second, is_former);
        };
        for (const auto &[at, jump] : jumps->at) take(*jump, jump->state == engine::Jump::State::lifted);
        for (const auto &jump : jumps->former) take(*jump, true);
    }
    std::erase_if(trace.engine.jumps, [](const auto &jumps) { return jumps.use_count() == 1; });
}

} // namespace ktrace::upgrade
