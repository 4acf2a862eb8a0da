// Ring: what a hit leaves in its thread's ring.
#pragma once

#include "agent/layout.h"
#include "program/run/machine.h"

namespace ktrace::agent {

inline bool is_ring_full(const Thread &thread) {
    return tail_of(thread.state) - *static_cast<const volatile std::uint64_t *>(&thread.head) >= bell_at;
}

/// Where the next record may be written, longest_record bytes in one piece. Fills up what is left of the ring behind
/// `tail` where that is too little, and moves it.
std::byte *next_place(Thread &thread, std::uint64_t &tail);

/// The values of a moment, as bytes behind a RingRecord and a head of some kind.
struct Payload {
    Kind kind = Kind::event;
    std::size_t size = 0;
    bool fits = true;
};

/// Writes an event's nodes, or a Sample and its key, of at most `room` bytes.
Payload write_payload(program::Machine &machine, const program::Image &image, const program::MomentImage &moment,
                      std::byte *at, std::size_t room);

/// Writes the header of a record whose payload is there already. Gives its size.
std::uint32_t write_header(std::byte *at, std::uint32_t number, std::uint64_t time, Kind kind, std::size_t payload);

} // namespace ktrace::agent
