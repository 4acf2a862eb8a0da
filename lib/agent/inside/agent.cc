// The agent: what a hit does in the process itself, in the place of a stop. It has no data, makes no system call, and
// waits for nothing; it knows its thread by the thread pointer.
#include <cstring>
#include <new>

#include "agent/layout.h"
#include "arch/in_process.h"
#include "arch/isa_detour.h"
#include "program/run/machine.h"

namespace ktrace::agent {

namespace {

using program::Image;
using program::Machine;
using program::MomentImage;
using program::NodeWriter;
using program::Parts;

static_assert(sizeof(Machine) <= sizeof(Thread::machine));

/// Of the thread that runs this; nullptr: ktrace has not seen it yet.
Thread *own_thread(const Threads &threads) {
    const std::uint64_t pointer = arch::own_thread_pointer();
    std::size_t at = key_of(pointer);
    for (std::size_t i = 0; i < longest_search; i++, at = (at + 1) % keys) {
        const Key &key = threads.key[at];
        if (key.thread_pointer == pointer) return reinterpret_cast<Thread *>(key.thread);
    }
    return nullptr;
}

/// Of the row that the place of the thread's stack chooses, as a counting stub does.
std::uint64_t *counter(std::uint64_t in_first_row, const void *stack) {
    const auto page = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(stack) >> 14);
    const std::uint32_t row = page * 0x9e3779b1U >> 28;
    return reinterpret_cast<std::uint64_t *>(in_first_row + row * arch::counter_row_size);
}

void write_nodes(Machine &machine, const Image &image, Parts parts, NodeWriter &out) {
    for (program::Part part : image[parts]) {
        const std::size_t before = out.size();
        machine.run(image[part], out);
        if (out.size() == before) out.empty(program::Tag::na);
    }
}

/// Where the next record may be written, longest_record bytes in one piece.
struct Place {
    std::uint64_t tail = 0; // of it
    std::byte *at = nullptr;
};

/// Fills up what is left of the ring where that is too little.
Place next_place(Thread &thread) {
    std::uint64_t tail = thread.tail;
    const std::size_t left = ring_size - tail % ring_size;
    if (left < longest_record) {
        const RingRecord rest{static_cast<std::uint32_t>(left), filler, 0, 0, 0};
        std::memcpy(thread.ring + tail % ring_size, &rest, 8); // there is room for no more, perhaps
        tail += left;
    }
    return {tail, thread.ring + tail % ring_size};
}

/// Writes the hit's record. False: it does not fit.
bool write_record(Machine &machine, const Image &image, const MomentImage &moment, const SiteCode &site, Place place,
                  std::uint64_t time, std::uint64_t &end) {
    std::byte *const payload = place.at + sizeof(RingRecord);
    const std::size_t room = longest_record - sizeof(RingRecord);
    std::size_t used = 0;
    if (moment.aggregates) {
        NodeWriter key({payload + sizeof(Sample), room - sizeof(Sample)}, image.header().payload_limit, true);
        write_nodes(machine, image, moment.key, key);
        if (key.overflowed()) return false;
        program::Slot value{.state = program::Slot::State::na};
        if (moment.has_value) value = machine.run(image[moment.value], key);
        const Sample sample{value.bits, moment.has_value && value.state == program::Slot::State::ok};
        std::memcpy(payload, &sample, sizeof sample);
        used = sizeof sample + key.size();
    } else {
        NodeWriter nodes({payload, room}, image.header().payload_limit, false);
        write_nodes(machine, image, moment.body, nodes);
        if (nodes.overflowed()) return false;
        used = nodes.size();
    }
    const std::size_t size = (sizeof(RingRecord) + used + 7) & ~std::size_t{7};
    const RingRecord record{static_cast<std::uint32_t>(size), site.number, time, static_cast<std::uint32_t>(used),
                            moment.aggregates};
    std::memcpy(place.at, &record, sizeof record);
    end = place.tail + size;
    return true;
}

Effect note(Thread &thread, Last last, std::uint64_t *place) {
    thread.last = last;
    thread.is_busy = 0;
    return {0, place};
}

/// It needs no machine.
bool is_comparison(std::span<const program::Instr> condition) {
    return condition.size() == 1 && condition[0].op == program::Opcode::compare_register;
}

Effect hit(const arch::Host::Registers &registers, const SiteCode &site, Thread &thread) {
    const Image image({reinterpret_cast<const std::byte *>(site.image), sizeof(program::ImageHeader)});
    const MomentImage &moment = image.moment(static_cast<program::Moment>(site.moment));
    const auto condition = image[moment.condition];
    if (is_comparison(condition) && program::compare_register(condition[0], registers) == 0)
        return note(thread, Last::filtered, counter(site.filtered, &registers));
    const program::HitView view{registers, nullptr, nullptr, Pid{thread.pid}, Tid{thread.tid}, 0,
                                0,         0,       {},      nullptr,         nullptr};
    Machine &machine = *new (thread.machine) Machine(image, view);
    if (moment.has_condition && !is_comparison(condition)) {
        NodeWriter nothing({}, 0, false);
        const program::Slot holds = machine.run(condition, nothing);
        if (holds.state != program::Slot::State::ok || holds.bits == 0)
            return note(thread, Last::filtered, counter(site.filtered, &registers));
    }
    const std::uint64_t time = arch::processor_time();
    std::uint64_t end = 0;
    if (!write_record(machine, image, moment, site, next_place(thread), time, end))
        return note(thread, Last::dropped, counter(site.dropped, &registers));
    thread.last = Last::record;
    thread.last_size = static_cast<std::uint32_t>(end - thread.tail);
    thread.is_busy = 0;
    return {end, &thread.tail};
}

} // namespace

/// Called by the entry (arch/), which has made `registers` of the thread's.
extern "C" Effect ktrace_agent_hit(const arch::Host::Registers *registers, const SiteCode *site) {
    Thread *thread = own_thread(*reinterpret_cast<const Threads *>(site->threads));
    if (!thread) return {static_cast<std::uint64_t>(Bell::unknown_thread), nullptr};
    if (thread->is_busy != 0)
        return {0, counter(site->dropped, registers)}; // a handler above, which ktrace does not see
    if (thread->tail - *static_cast<volatile std::uint64_t *>(&thread->head) >= bell_at)
        return {static_cast<std::uint64_t>(Bell::ring_is_full), nullptr};
    thread->is_busy = 1;
    return hit(*registers, *site, *thread);
}

} // namespace ktrace::agent
