// Layout: what the agent in a process and ktrace outside of it share: where the threads find what is theirs, and what
// they leave there. The agent and the ktrace that has mapped it are one build.
//
// Two mappings. One is ktrace's to write, through /proc/PID/mem: the agent, and for each site a SiteCode and the image
// of its program. The other is shared memory, which the program could write to: what ktrace reads there it does not
// trust.
//
// A ring has one writer, its thread, and one reader, ktrace. Records lie between `head` and `tail`, which count bytes
// from the beginning of time; each lies whole in the ring, and is there when `tail` is behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ktrace::agent {

/// A site whose hits the agent sees to.
struct SiteCode {
    std::uint64_t entry = 0;                 // address of the agent's entry: the stub calls it through this
    std::uint64_t site = 0;                  // its own address
    std::uint64_t image = 0;                 // of the program: program/run/image.h
    std::uint64_t threads = 0;               // of the Threads
    std::uint64_t filtered = 0, dropped = 0; // of counters, in the first row (arch/isa_detour.h)
    std::uint32_t number = 0;                // of the site: records name it so
    std::uint32_t moment = 0;                // program::Moment
};

/// A thread's place: by its thread pointer. Open addressing; a search ends behind `longest_search`.
struct Key {
    std::uint64_t thread_pointer = 0; // 0: free
    std::uint64_t thread = 0;         // address of its Thread
};
inline constexpr std::size_t keys = 4096, longest_search = 16;
inline constexpr std::size_t key_of(std::uint64_t thread_pointer) {
    return (thread_pointer * 0x9e3779b97f4a7c15U >> 32) % keys;
}

inline constexpr std::size_t ring_size = 128 << 10; // bytes, a power of two
inline constexpr std::size_t longest_record = 4096;
inline constexpr std::size_t bell_at = ring_size / 4 * 3; // full so far, the thread rings before it does anything else

/// The outcome of the thread's last hit.
enum class Last : std::uint32_t { nothing, filtered, dropped, record };

struct Thread {
    std::uint64_t tail = 0;
    Last last = Last::nothing;
    std::uint32_t last_size = 0;   // record: bytes by which `tail` has grown
    std::uint64_t is_busy = 0;     // the thread is in the agent
    std::int32_t pid = 0, tid = 0; // as ktrace names them
    std::uint64_t padding[4] = {};
    std::uint64_t head = 0; // ktrace's to write, as pid and tid
    std::uint64_t padding2[7] = {};
    alignas(64) std::byte machine[16 << 10]; // the evaluator's
    alignas(64) std::byte ring[ring_size];
};

inline constexpr std::size_t most_threads = 256;
struct Threads {
    Key key[keys];
    Thread thread[most_threads];
};

/// Before each record's payload: the nodes of an event, or a Sample and the nodes of its key.
struct RingRecord {
    std::uint32_t size = 0;    // of all, a multiple of 8
    std::uint32_t number = 0;  // of the site; `filler`: bytes up to the ring's end, and nothing else
    std::uint64_t time = 0;    // of the processor's counter
    std::uint32_t payload = 0; // bytes
    std::uint32_t is_sample = 0;
};
inline constexpr std::uint32_t filler = ~std::uint32_t{0};

/// For a table.
struct Sample {
    std::uint64_t bits = 0; // of its value
    std::uint64_t is_readable = 0;
};

/// The answer to a hit, which takes effect by one instruction (arch/): `value` is stored at `place`, or, where it is 0,
/// one is added there.
struct Effect {
    std::uint64_t value = 0;
    std::uint64_t *place = nullptr; // nullptr: the thread rings, and `value` says why
};

enum class Bell : std::uint64_t { unknown_thread = 1, ring_is_full };

static_assert(std::is_trivially_copyable_v<Threads> && sizeof(RingRecord) % 8 == 0);

} // namespace ktrace::agent
