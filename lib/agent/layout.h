// Layout: what the agent in a process and ktrace outside of it share: where the threads find what is theirs, and what
// they leave there. The agent and the ktrace that has mapped it are one build.
//
// Two mappings. One is ktrace's to write, through /proc/PID/mem: the agent, and for each site a SiteCode and the image
// of its program. The other is shared memory, which the program could write to: what ktrace reads there it does not
// trust.
//
// A ring has one writer, its thread, and one reader, ktrace. Records lie between `head` and the tail, which count bytes
// from the beginning of time; each lies whole in the ring, and is there when the tail is behind it.
//
// A table's row that a thread hits often is its own: it adds to it, and ktrace looks at what has come since it looked
// last. A hit's addition is written down apart, is the thread's last one as soon as its state says so, and goes
// into the row before the next one: so a hit adds all or nothing, wherever its thread is taken out of the agent.
//
// A thread's calls lie in the order in which they began, each at a lower place of its own stack than the one before, or
// at the same where a function has left by a jump to the next one: they return together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ktrace::agent {

/// A site whose hits the agent sees to.
struct SiteCode {
    std::uint64_t entry = 0;                 // address of the agent's entry: the stub calls it through this
    std::uint64_t site = 0;                  // its own address
    std::uint64_t image = 0;                 // of the program: program/run/image.h; none where calls return to
    std::uint64_t threads = 0;               // of the Threads
    std::uint64_t filtered = 0, dropped = 0; // of counters, in the first row (arch/isa_detour.h)
    std::uint32_t number = 0;                // of the probe: records name it so
    std::uint32_t moment = 0;                // program::Moment; ret: calls return to there
    std::uint64_t next = 0;                  // address of the SiteCode of the next probe there; 0: there is none
    std::uint64_t inside = 0;                // bits of Thread::enclosed; 0: all hits are wanted
};

/// Open addressing: a search ends behind so many words, or at a free one.
inline constexpr std::size_t longest_search = 16;
inline constexpr std::size_t hash(std::uint64_t word) { return word * 0x9e3779b97f4a7c15U >> 32; }

/// A thread's place: by its thread pointer.
struct Key {
    std::uint64_t thread_pointer = 0; // 0: free
    std::uint64_t thread = 0;         // address of its Thread
};
inline constexpr std::size_t keys = 4096;
inline constexpr std::size_t key_of(std::uint64_t thread_pointer) { return hash(thread_pointer) % keys; }

inline constexpr std::size_t returns = 32768; // addresses that calls return to
inline constexpr std::size_t places = 16384;  // of calls' return addresses, by what they come to there
inline constexpr std::size_t place_of(std::uint64_t at) { return hash(at) % places; }

/// Memory that the agent may read without a fault, as far as ktrace has seen: [low, high), in order, none next to
/// another.
struct Range {
    std::uint64_t low = 0, high = 0;
};
inline constexpr std::size_t most_ranges = 1024;
struct Ranges {
    std::uint64_t count = 0;
    Range range[most_ranges];
};

/// CLOCK_MONOTONIC was `ns` at `time` of the processor's counter.
struct ClockPoint {
    std::uint64_t time = 0, ns = 0;
};

/// Of two, which one is in use; the other one may be written. The last bit says which; it grows with each change.
using Turn = std::uint64_t;

inline constexpr std::size_t ring_size = 128 << 10; // bytes, a power of two
inline constexpr std::size_t longest_record = 4096;
inline constexpr std::size_t bell_at = ring_size / 4 * 3; // full so far, the thread rings before it does anything else
inline constexpr std::size_t records_at_once = 6;         // of one hit: they find room behind that

/// The outcome of the thread's last hit.
enum class Last : std::uint32_t {
    nothing, // that has to be taken back
    filtered,
    dropped,
    stored, // records, and a call that has begun, perhaps
    added,  // to a row
};

/// A call of a return probe's function that has not returned.
struct Call {
    std::uint64_t place = 0, return_address = 0;
    std::uint64_t site = 0;  // address of its SiteCode
    std::uint64_t begin = 0; // of the processor's counter
    std::uint64_t cost = 0;  // the thread's, then
    std::uint64_t inner_before = 0,
                  inner_after = 0;     // of the call around it: spent in others inside, before and with it
    std::uint32_t number = 0;          // of the site
    std::uint32_t generation = 0;      // Threads::generation, then
    std::uint32_t hits = 0, stops = 0; // the thread's, then
    std::uint32_t captured_at = 0, captured_size = 0; // in Thread::captures
    std::uint64_t is_nested = 0;                      // in another one of the same site
};
inline constexpr std::size_t most_calls = 500, captures_size = 16 << 10;

/// Thread::state: the tail of the ring, which addition is the last one, and how many calls there are. They change by
/// one store.
inline constexpr unsigned calls_bits = 11;
inline constexpr std::uint64_t calls_of(std::uint64_t state) { return state & ((1U << calls_bits) - 1); }
inline constexpr std::uint64_t addition_of(std::uint64_t state) { return state >> calls_bits & 1; }
inline constexpr std::uint64_t tail_of(std::uint64_t state) { return state >> (calls_bits + 1); }
inline constexpr std::uint64_t state_of(std::uint64_t tail, std::uint64_t calls, std::uint64_t addition = 0) {
    return tail << (calls_bits + 1) | addition << calls_bits | calls;
}
inline constexpr std::uint64_t first_tail = ring_size; // a state is never 0
static_assert(most_calls < 1U << calls_bits);

/// A row's sums. Times are in ns.
struct Sums {
    std::uint64_t sum = 0, total = 0, inner = 0, taken = 0, taken_of_totals = 0; // see program::Stats
    std::uint64_t hits = 0, stops = 0;                                           // inside calls
    std::uint64_t min = 0, max = 0;                                              // where anything was counted
    bool operator==(const Sums &) const = default;
};

/// A row of a table without --by, for one thread and site. Behind it lie its cells, each a count.
struct Row {
    enum class Kind : std::uint32_t {
        count,
        times,   // --hist of durations: a cell for each program::time_bucket
        numbers, // --hist of integers, none below 0: by their width
        stats,   // a cell for each program::FineBucket of `octaves` octaves
    } kind = Kind::count;
    std::uint32_t is_of_durations = 0;
    std::uint64_t error_ns = 0; // times: a shorter call, with nothing inside, is in cell `low`
    std::uint64_t lowest = 0;   // stats: the first octave
    Sums sums;
};
inline constexpr std::size_t octaves = 16, fine = 64; // of stats: a value that is in none of these leaves a record
enum Cell : std::size_t {
    filtered_cell,
    unread_cell, // without a value
    low_cell,    // times: below the error; stats: 0
    first_cell,
};
inline constexpr std::size_t cells_of(Row::Kind kind) {
    return first_cell + (kind == Row::Kind::stats ? octaves * fine : kind == Row::Kind::count ? 1 : 65);
}
inline constexpr std::size_t size_of_row(Row::Kind kind) {
    return (sizeof(Row) + cells_of(kind) * sizeof(std::uint32_t) + 63) & ~std::size_t{63};
}
inline std::uint32_t *cells_of(Row &row) { return reinterpret_cast<std::uint32_t *>(&row + 1); }

/// Where a thread finds its row of a site: the probe's number, and the row's place in the Threads. 0: free.
inline constexpr std::uint64_t row_at(std::uint32_t number, std::uint64_t offset) {
    return std::uint64_t{number} << 32 | offset;
}
inline constexpr std::size_t row_keys = 1024, longest_row_search = 4;

/// An addition to a row: its cell and sums, as they are to be afterwards.
struct Addition {
    std::uint64_t row = 0; // address; 0: nothing is added
    std::uint32_t cell = 0, count = 0;
    Sums sums;
};

struct Thread {
    std::uint64_t state = 0;
    Last last = Last::nothing;
    std::uint32_t last_size = 0;       // stored: bytes by which the tail has grown
    std::uint64_t is_busy = 0;         // the thread is in the agent
    std::uint64_t cost = 0;            // of the processor's counter, spent in hits and in stops so far
    std::uint32_t hits = 0, stops = 0; // so far, as `cost` has them
    std::uint64_t times = 0;           // not 0: ktrace wants the cost known, as calls of its own are under way
    std::uint64_t outer = 0;           // calls that are older than the youngest one of those
    std::uint64_t rang_at = 0;         // of the processor's counter; 0: its stop was left out
    std::int32_t pid = 0, tid = 0;     // as ktrace names them
    std::uint64_t stack_low = 0, stack_high = 0; // of its own stack
    std::uint64_t reads = 0;                     // the address that it is about to read from; 0: none
    std::uint64_t missed = 0;                    // in its last hit: is not in the Ranges; 0: all was
    std::uint64_t last_calls = 0;                // stored: calls that have begun, 0 or 1
    std::uint64_t has_floats = 0;                // the program's are kept: they are to be put back
    std::uint64_t head = 0;                      // ktrace's to write, as pid, tid, times, outer and the stack
    std::uint64_t enclosed = 0; // likewise: a bit for each --inside under whose function the thread may be
    std::uint64_t waited = 0;   // of `cost`: in stops behind which the hit came again
    std::uint64_t padding2[5] = {};
    Call call[most_calls + 1];
    std::byte captures[captures_size];
    std::uint64_t row_at[row_keys]; // ktrace's to write
    Addition addition[2];
    alignas(64) std::byte machine[16 << 10]; // the evaluator's
    alignas(64) std::byte floats[1024];      // the program's floating point registers, while has_floats is not 0
    alignas(64) std::byte ring[ring_size];
};

/// ktrace was not there for so long: no bell rings.
inline constexpr std::uint64_t longest_silence_ns = 10'000'000'000;

inline constexpr std::size_t most_threads = 256;
inline constexpr std::size_t rows_size = 32 << 20;         // bytes, for the rows of all threads
inline constexpr std::size_t rows_of_a_thread = 512 << 10; // at most
struct Threads {
    Key key[keys];
    std::uint64_t return_to[returns]; // addresses whose traps or jumps are there
    std::uint32_t in_ktrace[places];  // calls that ktrace follows, which began at a stop
    std::uint32_t generation;         // grows when calls that are there are not seen to return any more
    std::uint32_t unused;
    std::uint64_t ns_per_tick; // of the processor's counter, times 2^32
    Turn clock_now;
    ClockPoint clock[2];
    std::uint64_t per_call;   // ticks: how long a call of an empty function seems to take
    std::uint64_t per_hit;    // ticks that a hit takes besides what it sees of itself
    std::uint64_t nothing;    // where answers without effect go
    std::uint64_t alive_at;   // of the processor's counter, when ktrace has looked at its clock last
    std::uint64_t longest_ns; // without such a look: then no bell rings
    std::uint64_t error_of_call, error_of_hit, error_of_stop; // ns: durations are known no better than so
    Turn readable_now;
    Ranges readable[2];
    Thread thread[most_threads];
    std::byte rows[rows_size];
};

__extension__ using Wide = unsigned __int128;
inline constexpr std::uint64_t in_ns(std::uint64_t ticks, std::uint64_t ns_per_tick) {
    return static_cast<std::uint64_t>(Wide{ticks} * ns_per_tick >> 32);
}

inline std::uint64_t in_ticks(std::uint64_t ns, std::uint64_t ns_per_tick) {
    if (ns_per_tick == 0) return 0;
    return static_cast<std::uint64_t>(static_cast<double>(ns) / static_cast<double>(ns_per_tick) * 4294967296.0);
}

enum class Kind : std::uint32_t { event, sample, filtered };

/// Before each record's payload: where a call has returned, a Returned; then the nodes of an event, or a Sample and the
/// nodes of its key, or nothing.
struct RingRecord {
    std::uint32_t size = 0;    // of all, a multiple of 8
    std::uint32_t number = 0;  // of the site; `filler`: bytes up to the ring's end, and nothing else
    std::uint64_t time = 0;    // of the processor's counter
    std::uint32_t payload = 0; // bytes
    Kind kind = Kind::event;
};
inline constexpr std::uint32_t filler = ~std::uint32_t{0};

/// In ticks of the processor's counter.
struct Returned {
    std::uint64_t begin = 0;
    std::uint64_t took = 0, taken = 0; // without what was taken off, and that
    std::uint64_t inner = 0;
    std::uint32_t hits = 0, stops = 0; // inside
    std::uint32_t is_nested = 0, is_outermost = 0;
};

/// For a table.
struct Sample {
    std::uint64_t bits = 0; // of its value
    std::uint64_t is_readable = 0;
};

/// The answer to a hit, which takes effect by one instruction (arch/): `value` is stored at `place`, or, where it is 0,
/// one is added there.
struct Effect {
    std::uint64_t value = 0;
    std::uint64_t *place = nullptr; // nullptr: the thread rings; `value` is a Bell
};
enum class Bell : std::uint64_t {
    look,  // at the thread: it is not known, or its ring is full
    serve, // the hit is for ktrace
};

static_assert(std::is_trivially_copyable_v<Threads> && sizeof(RingRecord) % 8 == 0 && sizeof(Returned) % 8 == 0);

} // namespace ktrace::agent
