#include "engine/agent/agent_records.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "agent/layout.h"
#include "base/clock.h"
#include "engine/space/jumps.h"
#include "program/tables/state.h"

namespace ktrace::engine {

namespace {

using Place = AgentThreads::Place;

struct Taken {
    std::uint64_t time_ns = 0; // CLOCK_MONOTONIC
    const Place *place = nullptr;
    const Jump *jump = nullptr;
    bool is_sample = false;
    std::size_t at = 0, size = 0; // of the payload, in `bytes` of Batch
};

struct Batch {
    std::vector<Taken> taken;
    std::vector<std::byte> bytes;
};

/// Copies all records. One that is not as the agent writes it ends that: the rest is lost.
void copy_ring(Engine &engine, const Jumps &jumps, Place &place, Batch &batch) {
    const std::uint64_t tail = std::atomic_ref(place.thread->tail).load(std::memory_order_acquire);
    const std::byte *const ring = place.thread->ring;
    while (tail - place.head >= sizeof(std::uint64_t) && tail - place.head <= agent::ring_size) {
        const std::size_t at = place.head % agent::ring_size, left = agent::ring_size - at;
        agent::RingRecord record;
        std::memcpy(&record, ring + at, std::min(sizeof record, left));
        if (record.size == 0 || record.size > left || record.size > tail - place.head || record.size % 8 != 0) break;
        place.head += record.size;
        if (record.number == agent::filler) continue;
        if (record.number >= jumps.by_number.size() || record.payload > record.size - sizeof record) break;
        const Taken taken{engine.processor_clock.monotonic_ns(record.time),
                          &place,
                          jumps.by_number[record.number],
                          record.is_sample != 0,
                          batch.bytes.size(),
                          record.payload};
        const std::byte *const payload = ring + at + sizeof record;
        batch.bytes.insert(batch.bytes.end(), payload, payload + record.payload);
        batch.taken.push_back(taken);
    }
    if (tail - place.head > agent::ring_size) place.head = tail; // it was written over
    std::atomic_ref(place.thread->head).store(place.head, std::memory_order_release);
}

void add_sample(const Jump &jump, const Place &place, std::span<const std::byte> payload) {
    agent::Sample sample;
    if (payload.size() < sizeof sample) return;
    std::memcpy(&sample, payload.data(), sizeof sample);
    const program::Image image = jump.run->program.image();
    const auto &moment = image.moment(jump.run->moment);
    program::Number number;
    if (moment.value_is_unsigned) number.kind = program::Number::Kind::uint;
    if (moment.value_is_float) number.kind = program::Number::Kind::floating;
    number.bits = sample.bits;
    const Credit &credit = jump.credits.front();
    credit.state->aggregation.add(payload.subspan(sizeof sample), place.pid.value,
                                  sample.is_readable != 0 ? &number : nullptr);
}

void write_event(Engine &engine, const Taken &taken, std::span<const std::byte> payload, std::uint64_t realtime_is) {
    program::RecordHeader header;
    header.moment = taken.jump->run->moment;
    header.size = static_cast<std::uint32_t>(sizeof header + payload.size());
    header.time_ns = taken.time_ns + realtime_is;
    header.pid = taken.place->pid.value;
    header.tid = taken.place->tid.value;
    header.location = taken.jump->credits.front().location;
    header.set_name(taken.place->name);
    auto task = engine.tasks.find(taken.place->tid.value);
    if (task != engine.tasks.end()) header.sequence = ++task->second.sequence;
    auto record = engine.records.reserve();
    std::memcpy(record.data(), &header, sizeof header);
    std::memcpy(record.data() + sizeof header, payload.data(), payload.size());
    engine.records.commit(header.size);
}

void hand_on(Engine &engine, const Batch &batch) {
    const std::uint64_t realtime_is = realtime_ns() - monotonic_ns(); // further
    for (const Taken &taken : batch.taken) {
        if (taken.jump->credits.empty() || !taken.jump->run) continue;
        const auto payload = std::span(batch.bytes).subspan(taken.at, taken.size);
        if (taken.is_sample)
            add_sample(*taken.jump, *taken.place, payload);
        else
            write_event(engine, taken, payload, realtime_is);
        program::Counters &counters = *taken.jump->credits.front().counters;
        counters.hits++;
        counters.events++;
        engine.events++;
    }
}

bool has_records(const Place &place) {
    return std::atomic_ref(place.thread->tail).load(std::memory_order_acquire) != place.head;
}

void copy_place(Engine &engine, const Process &process, Place &place, Batch &batch) {
    if (!has_records(place)) return;
    if (const std::string_view name = engine.names.read(place.pid, place.tid); !name.empty())
        place.name = name;
    else if (place.name.empty())
        place.name = process.target.comm;
    copy_ring(engine, *process.space->jumps, place, batch);
}

} // namespace

void take_records(Engine &engine, Process &process, Tid tid) {
    Place *place = process.space->threads ? process.space->threads->of(tid) : nullptr;
    if (!place || !has_records(*place)) return;
    engine.processor_clock.compare();
    Batch batch;
    copy_place(engine, process, *place, batch);
    hand_on(engine, batch);
}

void take_all_records(Engine &engine) {
    engine.processor_clock.compare();
    Batch batch;
    for (const auto &[pid, process] : engine.processes) {
        if (!process->space->threads || process->borrowed) continue;
        for (auto &[tid, place] : process->space->threads->all()) copy_place(engine, *process, place, batch);
    }
    std::ranges::stable_sort(batch.taken, {}, &Taken::time_ns);
    hand_on(engine, batch);
}

} // namespace ktrace::engine
