// Record: what a hit leaves behind, as bytes: a versioned header, then the values in the order of the layout's fields.
// The wire between the tracing loop and the sinks; no pointers in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "value/type.h"

namespace ktrace::program {

/// When a program runs at a location.
/// call: the entry of a return probe; log: a line that a plugin prints: the text follows the header, `location` is its
/// level.
enum class Moment : std::uint8_t { pre, post, entry, call, ret, watch, log };

inline constexpr std::uint16_t record_version = 1;

struct RecordHeader {
    std::uint16_t version = record_version;
    Moment moment = Moment::pre;
    std::uint8_t clock = 0; // 0: CLOCK_REALTIME
    std::uint32_t size = 0; // with this header, bytes
    std::uint64_t time_ns = 0;
    std::uint64_t sequence = 0; // per thread, from 1
    std::int32_t pid = 0, tid = 0;
    std::uint32_t location = 0;    // index of the LocationInfo
    char comm[16] = {};            // as it was at the hit; ends with a 0
    std::uint64_t duration_ns = 0; // ret
    std::uint64_t entry_ns = 0;    // ret: when the call began, as time_ns
    std::uint64_t error_ns = 0;    // ret: of the duration; 0: not known
    std::uint64_t taken_ns = 0;    // ret: ktrace's own share, which is no part of the duration

    std::string_view name() const { return {comm, ::strnlen(comm, sizeof comm)}; }
    void set_name(std::string_view name) { comm[name.copy(comm, sizeof comm - 1)] = 0; }
};

/// The values of a record are a sequence of nodes, one for each Field of the location's `fields[moment]`, in that
/// order. Each begins with a Tag byte; the tag fixes the rest, little endian and unaligned. record_reader.h
/// decodes it.
enum class Tag : std::uint8_t {
    raw,      // u32 type index, u32 size, bytes: a value of a type in the value::TypeTable, as in memory; size < the
              // type's size: cut off at max_value. A null `char *` or pointer to a struct is raw too
    string,   // u64 pointer, u8 truncated, u32 size, bytes: a char * and what it points to; pointer 0: a text that is
              // not in the target (comm, func, a literal) or lies in an object (a char array)
    pointee,  // u64 pointer, u32 type index (of the pointee), u32 size, bytes: a pointer to a struct, one level
              // followed, or to a text of wide characters: these, with the 0 behind them where it was seen
    sint,     // i64: an untyped or computed integer, prints in decimal
    uint,     // u64: prints in decimal
    hex,      // u64: a register or pointer, prints in hex
    floating, // f64
    boolean,  // u8
    buffer,   // u32 size, bytes: buf()
    fault,    // u64 address: unmapped memory
    na,       // the expression does not fit this location, or has no value (a division by zero)
    unavailable, // optimized out
    stack,       // u32 count, u64 addresses: innermost first (absolute; the sink asks a symbolizer); see interrupted
    registers,   // u32 size, bytes: the ISA's Registers
    symbol,      // u64: an address, shown by its name
    function,    // u64: a frame of a stack (see interrupted): the function that it is in
    not_known,   // it is somewhere, but nothing says where
    elided,      // it lies too deep in others
    group,       // u8 Form, u8 cut (there is more), u32 type index, u32 size, nodes: what an object holds
};

/// The meaning of a group's nodes.
enum class Form : std::uint8_t {
    list,     // elements
    map,      // keys and their values, by turns
    tuple,    // elements of several types
    quantity, // a number of the unit that the type names
    nothing,  // an optional without a value: none
    named,    // the name of a type (a string) and a value of it
    object,   // the bytes of an object (raw), then for each part that holds more: a uint (its offset, of a virtual base
              // of_virtual_base; above it the index of its type) and its node
};
inline constexpr std::uint32_t of_virtual_base = ~std::uint32_t{0};

/// In an address of a stack: execution was interrupted there, as under a signal handler; others but the first one are
/// behind a call. (User space has no address with this bit.)
inline constexpr std::uint64_t interrupted = std::uint64_t{1} << 63;

/// Of an unavailable value: not that it is optimized out, but that nothing says where it is.
inline constexpr std::uint64_t unavailable_not_known = 1;

/// Bytes of one value (of a raw value, a pointee, a string, a buffer) in a record, at most.
inline constexpr std::size_t max_value = 1024;
/// Frames of one stack, at most.
inline constexpr std::size_t max_frames = 127;

/// One value of a record: where it stands in the event and what it is called.
struct Field {
    enum class Role : std::uint8_t {
        argument,
        retval,
        print,
        regs,
        stack,
        injected,     // what a value was changed to
        skipped,      // the value that the function, which did not run, has returned
        before,       // watch: the value as it was
        now,          // and as it is
        at,           // and the instruction behind the one that has touched it, as a stack of one frame
        error_number, // of a call that failed; else 0
    };
    Role role = Role::print;
    std::string name;      // parameter name, or the text of the EXPR
    std::size_t lines = 0; // stack: how many frames are shown, with those that were inlined; 0: all
};

inline constexpr std::size_t moments = 6; // those that have a location

/// The sinks' view of a location; Moment indexes `fields`. At Moment::ret the arguments stand first, then the
/// return value, then the rest; arguments are there only where they were asked for (JSON).
struct LocationInfo {
    std::uint32_t probe = 0; // number
    char kind = 'k';         // k j r w
    std::string symbol;      // may be empty: then `address` is shown
    std::uint64_t offset = 0;
    std::string module;
    std::uint64_t address = 0;
    std::string which; // distinguishes it from others of its name, in the summary; empty: there are none
    bool result_void = false;
    bool injects = false; // changes something
    bool full = false;    // values are not shortened in text
    std::vector<Field> fields[moments];
    const value::TypeTable *types = nullptr; // for Tag::raw and Tag::pointee
};

/// How often a location was hit and what became of it: hits is the sum of the others but the last.
struct Counters {
    std::uint64_t hits = 0, events = 0, filtered = 0, unselected = 0, missed = 0, unreturned = 0, dropped = 0;
    std::uint64_t injected = 0;   // hits at which something was changed
    std::uint64_t unfollowed = 0; // of missed: no way to see their end
    std::uint64_t in_flight = 0;  // of unreturned: calls that the end of the trace has found
    std::uint64_t ended = 0;      // of unreturned: with their thread, process or program
    std::uint64_t left = 0;       // of unreturned: by a jump to a function whose end is not seen

    std::uint64_t lost() const { return missed + (unreturned - in_flight) + dropped; }
};

} // namespace ktrace::program
