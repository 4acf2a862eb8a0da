// Wire: the memory that ktrace and one plugin host share, and how they take turns in it. Behind the Wire itself lies a
// pool of pages: those of the target that a handler has touched.
//
// Invariants: (1) one side has the turn, and only it reads or writes anything here; it waits on `turn` as a futex while
// it has not; (2) ktrace hands over with a Call, the host with a Request, and a Call is over with Request::done: until
// then ktrace only answers; (3) sizes and indexes that come from the host are checked by ktrace: the host may be
// broken; (4) no pointers but addresses in the target.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ktrace::plugin {

inline constexpr std::uint32_t wire_version = 2;

enum Turn : std::uint32_t { turn_ktrace, turn_host };

/// The requests of ktrace to the host.
enum class Call : std::uint32_t {
    load,   // bulk: path NUL parameters NUL → result: 0, or -1 with why in `text`
    init,   // → result: what the init function returned
    exit,   //
    pre,    // probe, registers → result: not 0: the pc was set
    post,   // probe, registers
    entry,  // probe, registers, floating, stack
    call,   // probe, registers, address (where it returns to) → result: not 0: left alone; else `instance`
    ret,    // probe, instance, address, registers; instance no_instance: its entry was not reported
    fault,  // probe, registers, trap → result: not 0: handled
    notes,  // only the notes
    answer, // to the Request: result, and what that holds
};

/// The reasons with which the host hands over.
enum class Request : std::uint32_t {
    done,       // the Call is over; `ended` says how, `result` what its function returned
    page,       // address → result: the page's number in the pool, or -1: it is not mapped, or not readable
    write_page, // address of a page that is there → result: 0, or -1: the target may not write there
    clear,      // all pages of this Call: changes are written back, the pool is empty again
    add,        // bulk: `count` ProbeWishes → result: 0 or -errno; bulk: `count` addresses
    remove,     // bulk: `count` numbers of probes (u64)
    enable,     // probe → result: 0 or -errno
    disable,    // the same
    symbol,     // address → text: name+0xoffset/0xsize [module], empty: unknown
    lookup,     // text: a name → address, 0: unknown
    comm,       // tid → text
    stack,      // the stopped thread's stack goes to the log
    flush,      // the log is full
};

/// How a function of the plugin's ended.
enum class Ended : std::uint32_t { returned, faulted, late, threw, aborted };

/// News of ktrace's that can wait for the next Call.
struct Note {
    /// A call in flight that will not return; misses so far; where the probe is now; it is nowhere any more.
    enum Kind : std::uint32_t { dropped, missed, placed, gone };
    std::uint32_t kind;
    std::uint32_t probe;
    std::uint64_t value; // dropped: the instance; missed: how many; placed: the address
};

enum HasHandler : std::uint8_t { has_before = 1, has_after = 2, has_fault_handler = 4 }; // pre, entry; post, ret

/// A probe to be registered; its symbol follows, padded to 8 bytes.
struct ProbeWish {
    std::uint32_t probe = 0; // its number in the host
    char kind = 'k';         // k j r
    std::uint8_t disabled = 0;
    std::uint8_t handlers = 0; // bits of HasHandler: what need not be called is not
    std::uint32_t maxactive = 0;
    std::uint32_t symbol_size = 0;
    std::uint64_t offset = 0;
    std::uint64_t address = 0; // 0: by symbol
};

/// A line of the log; its text follows, padded to 8 bytes.
struct LogLine {
    std::uint64_t time_ns = 0; // CLOCK_REALTIME
    std::uint32_t level = 0;   // as syslog(2): 0 to 7
    std::uint32_t size = 0;
};

constexpr std::size_t padded(std::size_t size) { return (size + 7) & ~std::size_t{7}; }

inline constexpr std::uint64_t no_instance = ~std::uint64_t{0};
inline constexpr std::size_t page_size = 4096;
inline constexpr std::size_t pool_pages = 16384;
inline constexpr std::size_t most_notes = 512;
inline constexpr std::size_t most_stack = 8192;

struct Wire {
    std::uint32_t version = wire_version;
    std::atomic<std::uint32_t> turn{turn_ktrace};
    std::uint32_t kind = 0; // Call or Request
    Ended ended = Ended::returned;
    std::int64_t result = 0;
    std::uint64_t address = 0;
    std::uint64_t instance = 0;
    std::uint64_t now_ns = 0; // ktime_get() at the beginning of a Call
    std::uint32_t probe = 0;
    std::uint32_t count = 0;
    std::int32_t pid = 0, tid = 0; // whom the handler runs for
    std::int32_t trap = 0;
    std::uint32_t has_floating = 0, stack_size = 0;
    std::uint32_t note_count = 0, log_used = 0, bulk_used = 0;
    char text[1024] = {};
    alignas(64) std::byte registers[512] = {}; // the ISA's general registers, as ptrace has them
    alignas(64) std::byte floating[1024] = {};
    alignas(64) std::byte stack[most_stack] = {}; // from the stack pointer up
    Note notes[most_notes] = {};
    alignas(8) std::byte log[65536] = {};
    alignas(8) std::byte bulk[std::size_t{1} << 20] = {};
};

inline constexpr std::size_t pool_offset = (sizeof(Wire) + page_size - 1) / page_size * page_size;
inline constexpr std::size_t wire_size = pool_offset + pool_pages * page_size;

/// Where the host keeps what is its own. Nothing of the target's lies in it.
struct Window {
    std::uint64_t start = 0, size = 0;
    bool contains(std::uint64_t address) const { return address - start < size; }
};

} // namespace ktrace::plugin
