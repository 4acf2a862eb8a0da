#include "engine/agent/agent_records.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <vector>

#include "agent/layout.h"
#include "arch/in_process.h"
#include "base/clock.h"
#include "engine/agent/agent_rows.h"
#include "engine/calls/timing.h"
#include "engine/space/jumps.h"
#include "engine/space/returns.h"
#include "program/tables/state.h"

namespace ktrace::engine {

namespace {

using Place = AgentThreads::Place;

/// A thread whose records are taken.
struct Source {
    AgentThreads *threads = nullptr;
    Place *place = nullptr;
    Task *task = nullptr; // nullptr: it is not known any more
};

struct Taken {
    std::uint64_t time_ns = 0; // CLOCK_MONOTONIC
    const Source *from = nullptr;
    const AgentRun *run = nullptr;
    const Credit *credit = nullptr;
    agent::Kind kind = agent::Kind::event;
    std::size_t at = 0, size = 0; // of the payload, in `bytes` of Batch
};

struct Batch {
    std::deque<Source> sources; // they stay where they are
    std::vector<Taken> taken;
    std::vector<std::byte> bytes;
};

std::uint64_t tail_of(const Place &place) {
    return agent::tail_of(std::atomic_ref(place.thread->state).load(std::memory_order_acquire));
}

const program::MomentImage &image_of(const AgentRun &run) { return run.program.image().moment(moment_of(run)); }

void add_sample(const Engine &engine, const Taken &taken, std::span<const std::byte> payload,
                const program::Duration *took) {
    agent::Sample sample;
    if (payload.size() < sizeof sample) return;
    std::memcpy(&sample, payload.data(), sizeof sample);
    const program::MomentImage &moment = image_of(*taken.run);
    program::Number number;
    if (moment.value_is_unsigned) number.kind = program::Number::Kind::uint;
    if (moment.value_is_float) number.kind = program::Number::Kind::floating;
    number.bits = sample.bits;
    const bool has_value = sample.is_readable != 0;
    taken.credit->state->aggregation.add(payload.subspan(sizeof sample), taken.from->place->pid.value,
                                         has_value ? &number : nullptr, took);
    consider_row(engine, *taken.from->threads, *taken.from->place, *taken.run, *taken.credit,
                 has_value ? &sample.bits : nullptr);
}

void write_event(Engine &engine, const Taken &taken, std::span<const std::byte> payload, std::uint64_t realtime_is,
                 const program::Duration *took) {
    program::RecordHeader header;
    header.moment = moment_of(*taken.run);
    header.size = static_cast<std::uint32_t>(sizeof header + payload.size());
    header.time_ns = taken.time_ns + realtime_is;
    if (took) {
        header.duration_ns = took->ns;
        header.entry_ns = header.time_ns - took->since_ns;
        header.error_ns = took->error_ns();
        header.taken_ns = took->taken_ns;
    }
    header.pid = taken.from->place->pid.value;
    header.tid = taken.from->place->tid.value;
    header.location = taken.credit->location;
    header.set_name(taken.from->place->name);
    if (Task *const task = taken.from->task) header.sequence = ++task->sequence;
    auto record = engine.records.reserve();
    std::memcpy(record.data(), &header, sizeof header);
    std::ranges::copy(payload, record.begin() + sizeof header);
    engine.records.commit(header.size);
}

/// Another call of the same function is under way, which a stop has seen begin.
bool is_within_another(const Task &task, std::uint32_t location) {
    for (const Instance *each = task.calls.youngest; each; each = each->older_call)
        if (each->attachment->location == location) return true;
    return false;
}

/// Into one that is new: copies of it took longer than all else.
void find_duration(const Engine &engine, const Taken &taken, const agent::Returned &returned, program::Duration &took) {
    const std::uint64_t rate = engine.processor_clock.ns_per_tick();
    const AgentCosts &costs = engine.agent_costs;
    took.ns = agent::in_ns(returned.took, rate);
    took.taken_ns = agent::in_ns(returned.taken, rate);
    took.inner_ns = std::min(took.ns, agent::in_ns(returned.inner, rate));
    took.since_ns = taken.time_ns - engine.processor_clock.monotonic_ns(returned.begin);
    const Task *const task = taken.from->task;
    took.is_nested = returned.is_nested != 0 || (task && is_within_another(*task, taken.credit->location));
    took.errors = costs.of_call;
    if (returned.stops != 0) took.errors += engine.corrections.present(Clock::stops).of_stop * returned.stops;
    if (returned.hits != 0) took.errors += costs.of_hit * returned.hits;
}

/// The order of such records matters to the user.
bool is_ordered(const AgentRun &run, agent::Kind kind) {
    return kind == agent::Kind::event || (kind == agent::Kind::sample && image_of(run).selects);
}

/// A call has returned: what it took, which is in front of the payload. False: it is not.
bool take_duration(Engine &engine, const Taken &taken, std::span<const std::byte> &payload, program::Duration &took) {
    agent::Returned returned;
    if (payload.size() < sizeof returned) return false;
    std::memcpy(&returned, payload.data(), sizeof returned);
    payload = payload.subspan(sizeof returned);
    find_duration(engine, taken, returned, took);
    if (taken.from->task && returned.is_outermost != 0) add_to_youngest(*taken.from->task, took.ns);
    return true;
}

void hand_on(Engine &engine, const Taken &taken, std::span<const std::byte> payload, std::uint64_t realtime_is) {
    program::Counters &counters = *taken.credit->counters;
    if (taken.kind == agent::Kind::filtered) {
        counters.hits++;
        counters.filtered++;
        return;
    }
    program::Duration took;
    const bool returns = taken.run->moment == program::Moment::call;
    if (returns && !take_duration(engine, taken, payload, took)) return;
    counters.hits++;
    if (image_of(*taken.run).selects && !taken.credit->state->selector->next()) {
        counters.unselected++;
        return;
    }
    const program::Duration *const duration = returns ? &took : nullptr;
    if (taken.kind == agent::Kind::sample)
        add_sample(engine, taken, payload, duration);
    else
        write_event(engine, taken, payload, realtime_is, duration);
    counters.events++;
    engine.events++;
}

/// CLOCK_REALTIME less CLOCK_MONOTONIC, in ns. It stays until the clock is set or moved, so that times keep their
/// order: between two readings something else may run.
std::uint64_t realtime_further_by() {
    static std::uint64_t kept = 0;
    constexpr std::uint64_t most = 10'000;
    std::uint64_t closest = ~std::uint64_t{0}, found = 0;
    for (unsigned i = 0; i < 5; i++) {
        const std::uint64_t before = monotonic_ns(), realtime = realtime_ns(), behind = monotonic_ns();
        if (behind - before >= closest) continue;
        closest = behind - before;
        found = realtime - before - closest / 2;
    }
    if (found - kept + most > 2 * most) kept = found;
    return kept;
}

void hand_on(Engine &engine, const Batch &batch) {
    const std::uint64_t realtime_is = batch.taken.empty() ? 0 : realtime_further_by();
    for (const Taken &taken : batch.taken)
        hand_on(engine, taken, std::span(batch.bytes).subspan(taken.at, taken.size), realtime_is);
}

/// Takes all records: those that are ordered into the batch, which is to be put in the order of time. One that is not
/// as the agent writes it ends that: the rest is lost.
void take_ring(Engine &engine, const Jumps &jumps, const Source &source, Batch &batch) {
    Place &place = *source.place;
    const std::uint64_t tail = tail_of(place);
    const std::byte *const ring = place.thread->ring;
    std::array<std::byte, agent::longest_record> copy; // the program could write to the ring
    while (tail - place.head >= sizeof(std::uint64_t) && tail - place.head <= agent::ring_size) {
        const std::size_t at = place.head % agent::ring_size, left = agent::ring_size - at;
        agent::RingRecord record;
        std::memcpy(&record, ring + at, std::min(sizeof record, left));
        if (record.size == 0 || record.size > left || record.size > tail - place.head || record.size % 8 != 0) break;
        place.head += record.size;
        if (record.number == agent::filler) continue;
        if (record.size < sizeof record || record.size > agent::longest_record ||
            record.payload > record.size - sizeof record || record.number >= jumps.by_number.size())
            break;
        const NumberedRun &numbered = jumps.by_number[record.number];
        const Credit *const credit = numbered.credit();
        if (!credit) continue;
        const Taken taken{engine.processor_clock.monotonic_ns(record.time),
                          &source,
                          &numbered.jump->runs[numbered.index],
                          credit,
                          record.kind,
                          batch.bytes.size(),
                          record.payload};
        const std::byte *const payload = ring + at + sizeof record;
        if (is_ordered(*taken.run, record.kind)) {
            batch.bytes.insert(batch.bytes.end(), payload, payload + record.payload);
            batch.taken.push_back(taken);
        } else if (record.payload <= copy.size()) {
            std::copy_n(payload, record.payload, copy.begin());
            hand_on(engine, taken, std::span(copy).first(record.payload), 0);
        }
    }
    if (tail - place.head > agent::ring_size) place.head = tail; // it was written over
    std::atomic_ref(place.thread->head).store(place.head, std::memory_order_release);
}

bool has_records(const Place &place) { return tail_of(place) != place.head; }

/// A task that has ended has none any more.
void read_name(Engine &engine, Place &place) {
    if (const std::string_view name = engine.names.read(place.pid, place.tid); !name.empty()) place.name = name;
}

void take_place(Engine &engine, const Process &process, Place &place, Batch &batch) {
    if (!has_records(place)) return;
    const auto task = engine.tasks.find(place.tid.value);
    batch.sources.push_back(
        {process.space->threads.get(), &place, task == engine.tasks.end() ? nullptr : &task->second});
    take_ring(engine, *process.space->jumps, batch.sources.back(), batch);
}

} // namespace

void take_records(Engine &engine, Process &process, Tid tid) {
    Place *place = process.space->threads ? process.space->threads->of(tid) : nullptr;
    if (!place || !has_records(*place)) return;
    engine.processor_clock.compare();
    read_name(engine, *place);
    Batch batch;
    take_place(engine, process, *place, batch);
    hand_on(engine, batch);
}

void show_clock(const Engine &engine, AgentThreads &threads) {
    const std::uint64_t now = arch::processor_time();
    threads.set_clock({now, engine.processor_clock.monotonic_ns(now)}, engine.processor_clock.ns_per_tick());
}

void take_all_records(Engine &engine, const Process *became_another) {
    engine.processor_clock.compare();
    Batch batch;
    for (const auto &[pid, process] : engine.processes) {
        if (!process->space->threads || process->borrowed) continue;
        show_clock(engine, *process->space->threads);
        process->space->threads->show_alive();
        for (auto &[tid, place] : process->space->threads->all()) {
            if (process.get() != became_another) read_name(engine, place);
            take_rows(engine, *process, place);
            take_place(engine, *process, place, batch);
        }
    }
    std::ranges::stable_sort(batch.taken, {}, &Taken::time_ns);
    hand_on(engine, batch);
}

} // namespace ktrace::engine
