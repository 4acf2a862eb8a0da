#include "engine/agent/agent_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "agent/layout.h"
#include "program/run/buckets.h"
#include "program/tables/state.h"

namespace ktrace::engine {

namespace {

using Place = AgentThreads::Place;
using Kind = agent::Row::Kind;

constexpr std::uint64_t enough_records = 32;
constexpr std::uint64_t octaves_below = 4; // the least value that was seen, which a row has, too

/// The addition of the thread's last hit; without a row where it is at its next ones just now, which change the state,
/// then the place of one after the other: that hit is seen at the next look.
agent::Addition last_addition(const Place &place) {
    const auto state_now = [&] {
        std::atomic_thread_fence(std::memory_order_acquire);
        const std::uint64_t state = std::atomic_ref(place.thread->state).load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        return state;
    };
    const std::uint64_t state = state_now();
    agent::Addition last, again;
    std::memcpy(&last, &place.thread->addition[agent::addition_of(state)], sizeof last);
    bool is_whole = state_now() == state; // it may have been on its way back to this state meanwhile
    std::memcpy(&again, &place.thread->addition[agent::addition_of(state)], sizeof again);
    is_whole = is_whole && state_now() == state && std::memcmp(&last, &again, sizeof last) == 0;
    return is_whole ? last : agent::Addition{};
}

/// A row's contents.
struct Now {
    std::vector<std::uint32_t> counts;
    agent::Sums sums;
    bool operator==(const Now &) const = default;
};

Now read(agent::Row &row, Kind kind) {
    Now now{std::vector<std::uint32_t>(agent::cells_of(kind)), {}};
    std::memcpy(now.counts.data(), agent::cells_of(row), now.counts.size() * sizeof now.counts[0]);
    std::memcpy(&now.sums, &row.sums, sizeof now.sums);
    return now;
}

/// Adds what the thread's last hit has added; the row has it, or is to have it.
void add_last(const agent::Addition &last, Kind kind, Now &now) {
    if (last.cell >= now.counts.size() || last.count - now.counts[last.cell] > 1) return;
    now.counts[last.cell] = last.count;
    if (kind == Kind::stats) now.sums = last.sums;
}

/// The thread is just putting the row's first value there: the counts have it, and the sums do not yet.
bool is_without_first_sums(const Now &now, Kind kind) {
    if (kind != Kind::stats || now.sums.min <= now.sums.max) return false;
    return std::any_of(now.counts.begin() + agent::unread_cell + 1, now.counts.end(),
                       [](std::uint32_t count) { return count != 0; });
}

/// How much more there is than was seen; less where a hit was taken back, or the process has written there.
double more(std::uint64_t now, std::uint64_t seen) {
    return static_cast<double>(static_cast<std::int64_t>(now - seen));
}

/// Of --stats, what a row's sums have more than at the last look.
void add_sums(const Engine &engine, const agent::Sums &now, const AgentThreads::Row &row, program::Gathered &into) {
    const agent::Sums &seen = row.sums;
    into.min.bits = now.min;
    into.max.bits = now.max;
    into.sum = into.total = more(now.sum, seen.sum);
    if (row.as.is_of_durations == 0) return;
    into.self = into.sum - more(now.inner, seen.inner);
    into.total = more(now.total, seen.total);
    into.taken = more(now.taken, seen.taken);
    into.taken_of_totals = more(now.taken_of_totals, seen.taken_of_totals);
    const AgentCosts &costs = engine.agent_costs;
    into.errors = costs.of_call * more(into.count, into.unread);
    into.errors += costs.of_hit * more(now.hits, seen.hits);
    into.errors += engine.corrections.present(Clock::stops).of_stop * more(now.stops, seen.stops);
}

std::uint64_t change_of(std::size_t cell, const AgentThreads::Row &seen, const Now &now) {
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(now.counts[cell] - seen.counts[cell])});
}

std::uint64_t low_of_fine_cell(const agent::Row &row, std::size_t number) {
    return program::low_of({static_cast<std::uint32_t>(row.lowest + number / agent::fine),
                            static_cast<std::uint32_t>(number % agent::fine)});
}

/// The hits that came since the row was seen.
program::Gathered hits_since(const AgentThreads::Row &seen, const Now &now) {
    const Kind kind = seen.as.kind;
    program::Gathered hits;
    for (std::size_t cell = agent::unread_cell; cell < now.counts.size(); cell++) {
        const std::uint64_t count = change_of(cell, seen, now);
        if (count == 0) continue;
        hits.count += count;
        const std::size_t number = cell - agent::first_cell;
        if (cell == agent::unread_cell)
            hits.unread += count;
        else if (cell == agent::low_cell && kind == Kind::times)
            hits.below += count;
        else if (cell == agent::low_cell)
            hits.values.emplace_back(0, count);
        else if (kind == Kind::stats)
            hits.values.emplace_back(low_of_fine_cell(seen.as, number), count);
        else if (kind != Kind::count)
            hits.buckets.emplace_back(number, count);
    }
    return hits;
}

/// Nothing is lost where the thread is just adding to the row: what was not seen yet is more at the next look.
void take_row(Engine &engine, const Place &place, const AgentThreads::Row &seen, const NumberedRun &run,
              const Now &now) {
    const Credit &credit = *run.credit();
    const AgentRun &ran = run.jump->runs[run.index];
    const program::MomentImage &moment = ran.program.image().moment(moment_of(ran));
    program::Gathered hits = hits_since(seen, now);
    const std::uint64_t filtered = change_of(agent::filtered_cell, seen, now);
    credit.counters->hits += hits.count + filtered;
    credit.counters->filtered += filtered;
    credit.counters->events += hits.count;
    engine.events += hits.count;
    hits.error_ns = program::round_error(engine.agent_costs.of_call.p90);
    if (moment.value_is_unsigned) hits.min.kind = hits.max.kind = program::Number::Kind::uint;
    if (seen.as.kind == Kind::stats) add_sums(engine, now.sums, seen, hits);
    credit.state->aggregation.add_gathered(hits, place.pid.value);
}

/// The kind of row that a table may have; nothing: its hits are for records.
std::optional<Kind> kind_of(const program::MomentImage &moment, const program::Aggregation &table) {
    if (!moment.aggregates || moment.selects || table.has_keys() || moment.value_is_float) return {};
    switch (table.kind()) {
    case program::Table::Kind::count: return Kind::count;
    case program::Table::Kind::hist: return table.is_of_durations() ? Kind::times : Kind::numbers;
    case program::Table::Kind::stats:
        if (!table.keeps_recent()) return Kind::stats; // of recent ones alone the least and greatest are not known
        break;
    case program::Table::Kind::none: break;
    }
    return {};
}

} // namespace

void take_rows(Engine &engine, const Process &process, Place &place) {
    if (place.rows_size == 0) return;
    const agent::Addition last = last_addition(place);
    const Jumps &jumps = *process.space->jumps;
    for (auto &[number, seen] : place.rows) {
        if (!seen.row) continue;
        Now now = read(*seen.row, seen.as.kind);
        if (last.row == process.space->threads->address_of(*seen.row).value) add_last(last, seen.as.kind, now);
        if (now == Now{seen.counts, seen.sums} || is_without_first_sums(now, seen.as.kind)) continue;
        if (number < jumps.by_number.size() && jumps.by_number[number].credit())
            take_row(engine, place, seen, jumps.by_number[number], now);
        seen.counts = now.counts;
        seen.sums = now.sums;
    }
}

void consider_row(const Engine &engine, AgentThreads &threads, Place &place, const AgentRun &run, const Credit &credit,
                  const std::uint64_t *value) {
    AgentThreads::Row &row = place.rows[run.number];
    if (row.row || row.is_refused) return;
    if (value) row.least = std::min(row.least, *value);
    if (++row.records < enough_records) return;
    const program::MomentImage &moment = run.program.image().moment(moment_of(run));
    const program::Aggregation &table = credit.state->aggregation;
    const std::optional<Kind> kind = kind_of(moment, table);
    if (kind) {
        row.as = {.kind = *kind,
                  .is_of_durations = *kind != Kind::count && table.is_of_durations(),
                  .error_ns = std::max<std::uint64_t>(1, program::round_error(engine.agent_costs.of_call.p90)),
                  .lowest = program::fine_bucket(std::max<std::uint64_t>(1, row.least)).octave,
                  .sums = {.min = ~std::uint64_t{0}}};
        row.as.lowest -= std::min(row.as.lowest, octaves_below);
        row.counts.assign(agent::cells_of(*kind), 0);
        row.sums = row.as.sums;
        row.row = threads.add_row(place, run.number, row.as);
    }
    row.is_refused = row.row == nullptr;
}

} // namespace ktrace::engine
