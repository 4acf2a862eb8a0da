#include "agent/inside/ring.h"

#include <cstring>

namespace ktrace::agent {

using program::NodeWriter;

std::byte *next_place(Thread &thread, std::uint64_t &tail) {
    const std::size_t left = ring_size - tail % ring_size;
    if (left < longest_record) {
        const RingRecord rest{static_cast<std::uint32_t>(left), filler, 0, 0, Kind::event};
        std::memcpy(thread.ring + tail % ring_size, &rest, 8); // there is room for no more, perhaps
        tail += left;
    }
    return thread.ring + tail % ring_size;
}

Payload write_payload(program::Machine &machine, const program::Image &image, const program::MomentImage &moment,
                      std::byte *at, std::size_t room) {
    if (!moment.aggregates) {
        NodeWriter nodes({at, room}, image.header().payload_limit, false);
        machine.write_nodes(moment.body, nodes);
        return {Kind::event, nodes.size(), !nodes.overflowed()};
    }
    NodeWriter key({at + sizeof(Sample), room - sizeof(Sample)}, image.header().payload_limit, true);
    machine.write_nodes(moment.key, key);
    program::Slot value{.state = program::Slot::State::na};
    if (moment.has_value) value = machine.run(image[moment.value], key);
    const Sample sample{value.bits, moment.has_value && value.state == program::Slot::State::ok};
    std::memcpy(at, &sample, sizeof sample);
    return {Kind::sample, sizeof sample + key.size(), !key.overflowed()};
}

std::uint32_t write_header(std::byte *at, std::uint32_t number, std::uint64_t time, Kind kind, std::size_t payload) {
    const auto size = static_cast<std::uint32_t>((sizeof(RingRecord) + payload + 7) & ~std::size_t{7});
    const RingRecord record{size, number, time, static_cast<std::uint32_t>(payload), kind};
    std::memcpy(at, &record, sizeof record);
    return size;
}

} // namespace ktrace::agent
