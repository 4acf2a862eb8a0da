// THE CONTRACT of an instruction set for jumps in place of traps: which instructions a jump at a site displaces, where
// it may lead, and the copy of the displaced instructions. All pure, as isa.h.
//
// Words: the *window* of a site are the instructions that its jump covers, in whole or in part. An *inner boundary* is
// a place in the window, behind its first byte, at which a thread may start to execute: each holds a trap byte, which
// belongs to the jump's distance, too, so no thread ever executes a part of the jump. The *landing* is where the jump
// leads; from there it goes on to the stub.
#pragma once

#include <array>
#include <bitset>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tl/expected.hpp>

#include "base/addr.h"
#include "base/memory.h"

namespace ktrace::arch {

/// Why a site gets no jump.
enum class NoJump : std::uint8_t {
    not_built,      // for this processor
    no_instruction, // bytes in the window are not known, or none
    unmovable, // an instruction in it cannot be displaced (isa.h, Method::refuse, and calls through the stack pointer)
    system_call,            // in it
    breakpoint,             // the program's own, or a uprobe
    undefined,              // an instruction that is there to fault (ud2)
    transaction,            // xbegin
    trap_flag,              // an instruction that loads it
    call_not_last,          // its return address would lie in the window
    call_with_shadow_stack, // the copy of a call is none
    branch_into_middle,     // a branch of the function leads to the middle of an instruction
    maybe_data,             // behind a jump or a return, where no branch is known to lead
    function_ends,          // and more than padding lies behind it
    other_site,             // in the window: one stub would have to serve both
    restartable_sequence,   // bytes of one, or those before its abort handler
    landing_pad,            // of indirect branches, in a page where they may lead to nothing else
    out_of_reach,           // of the copy: an operand or target
    no_room,                // for a landing
};
inline constexpr std::size_t no_jump_reasons = static_cast<std::size_t>(NoJump::no_room) + 1;

/// A set of values that a byte may have.
using ByteSet = std::bitset<256>;

/// A site, and all that is known of the code from there on.
struct DetourSite {
    VirtAddr at;
    std::span<const std::byte> code; // from `at` on: as much as there is, up to `longest_window`
    VirtAddr function_end;           // of the site's function
    VirtAddr padding_end;            // what lies before it, behind function_end, is of no other function that is known
    std::span<const VirtAddr> targets; // of branches, as far as known; in order
    std::span<const VirtAddr> sites;   // all sites, this one or not; in order
    bool shadow_stack = false;         // the processor keeps one for the program's threads
    bool is_guarded = false;           // its page: indirect branches may lead to landing pads alone
};

/// An inner boundary within the bytes of the jump.
struct Boundary {
    std::uint8_t offset = 0;
    bool target = false; // a branch is known to lead here
    bool stays = false;  // an int3 among padding: it stays what it is
};

struct Window {
    std::uint8_t length = 0;          // bytes of the displaced instructions
    std::vector<std::uint8_t> starts; // of each of them, from the site
    std::vector<Boundary> inner;      // in order
};

/// The bytes that a thread may meet at an inner boundary, each of which stops it there.
struct TrapBytes {
    ByteSet anywhere;
    ByteSet at_targets; // at boundaries to which a branch is known to lead
};

/// A landing lies at `from` plus a signed number of 32 bits whose bytes, lowest first, are of these sets.
struct LandingRule {
    VirtAddr from;
    std::array<ByteSet, 4> distance;
};

/// The copy of a window's instructions, with the way back behind them, for one place.
struct Copies {
    struct Entry {
        std::uint8_t offset = 0; // in the window: 0, and each inner boundary but those that stay
        std::uint8_t at = 0;     // in `bytes`
    };
    /// A pc that a thread may have in `bytes`, and the program's own state then.
    struct Shown {
        std::uint8_t at = 0;
        VirtAddr pc;
        std::uint8_t pushed = 0; // bytes that lie on the stack already, which the program has not pushed at `pc`
    };
    std::vector<std::byte> bytes;
    std::vector<Entry> entries; // in order
    std::vector<Shown> shown;   // in order
};

/// Counters of sites lie in rows; a site has one in each, at the same place. A thread adds to the row that the place of
/// its stack chooses, by one instruction that no other processor comes between: exact for any threads, and where rows
/// differ no processor waits for another one's memory.
inline constexpr std::size_t counter_rows = 16, counter_row_size = 65536; // bytes of a row

/// The code that a landing leads to: it adds one to the site's counter, or calls the agent, with all registers and
/// flags as they were behind that, and runs the copies.
struct Stub {
    std::vector<std::byte> bytes;
    std::uint8_t copies_at = 0; // in `bytes`
    bool calls_agent = false;
    Copies copies;
};

/// The code that stubs call. It makes a Registers of the thread's on its stack, calls the agent (lib/agent), which lies
/// `size` bytes behind its start, with the address of that and what the stub hands on, and carries out the answer
/// (agent::Effect) by one instruction. The agent leaves the register that holds the Registers' address alone.
struct AgentEntry {
    std::vector<std::byte> bytes; // of `size`
    std::size_t bell = 0;         // where in it a trap rings
};

/// Code whose functions begin with an instruction as long as a jump, as do the places that their calls return to; they
/// do nothing else. Position-free.
struct RehearsalCode {
    std::vector<std::byte> bytes;
    /// Offsets. `call_alone`, `call_around`: a C function of one unsigned number, which calls `inner` or `around` so
    /// many times; `around` calls `inner`.
    std::size_t call_alone = 0, call_around = 0, inner = 0, around = 0;
    std::array<std::size_t, 3> returns{}; // of the calls of call_alone, call_around, around
};

/// A thread that was in the entry or the agent, and has its own registers again but for the pc.
struct OutOfAgent {
    VirtAddr in_stub;        // where in its stub it would have come back
    bool has_effect = false; // the answer was carried out
};

/// A thread that was in a stub, and is out of it.
struct OutOfStub {
    VirtAddr pc;            // where the program is
    bool is_undone = false; // the hit was counted, and the site's instruction has not run: it comes to the site again
};

/// Bytes from the stack pointer on that `leave` looks at.
inline constexpr std::size_t saved_by_stub = 24;

// clang-format off
template <class D>
concept Detour = requires(const DetourSite &site, const Window &window, const TrapBytes &traps, VirtAddr address,
                          std::span<const std::byte> code, const Stub &stub,
                          typename D::Registers &registers, Memory &memory) {
    { D::jump_size } -> std::convertible_to<std::size_t>;                               // bytes of a jump, at a site and at a landing
    { D::longest_window } -> std::convertible_to<std::size_t>;
    { D::lands_in_stub } -> std::convertible_to<bool>;                                  // nothing says what a jump's distance is made of: it leads to the stub, and no landing is needed
    { D::trap_byte() } -> std::same_as<const ByteSet &>;                                // the breakpoint's: SIGTRAP, pc behind it
    { D::illegal_bytes() } -> std::same_as<const ByteSet &>;                            // SIGILL, pc at the byte
    { D::targets(code, address) } -> std::same_as<std::vector<VirtAddr>>;               // a function's bytes, its address: where its direct branches and calls lead in it, in order
    { D::is_landing_pad(code) } -> std::same_as<bool>;                                  // the instruction at a site: a jump in its place would be none
    { D::window(site) } -> std::same_as<tl::expected<Window, NoJump>>;
    { D::landing_rule(window, address, traps) } -> std::same_as<LandingRule>;           // site
    { D::copy(window, code, address, address) } -> std::same_as<tl::expected<Copies, NoJump>>; // the window's bytes, site, where to
    { D::jump(address, address) } -> std::same_as<std::optional<std::vector<std::byte>>>;      // from, to; nothing: out of reach
    { D::counting_stub(window, code, address, address, address) } -> std::same_as<tl::expected<Stub, NoJump>>; // the window's bytes, site, where to, its counter in the first row
    { D::agent_stub(window, code, address, address, address) } -> std::same_as<tl::expected<Stub, NoJump>>; // the same; it hands on the address of the entry's address
    { D::agent_sees } -> std::convertible_to<std::size_t>;                              // bytes of Registers, from the first on, that the agent is given
    { D::agent_entry() } -> std::same_as<AgentEntry>;
    { D::rehearsal_code() } -> std::same_as<RehearsalCode>;
    { D::is_thread_pointer(address, memory) } -> std::same_as<bool>;                    // the agent finds a thread by it
    { D::come_again(registers) };                                                       // of a thread that is put back to where it has been: no debug register fires there once more
    { D::leave_agent(std::uint64_t{}, registers, memory) } -> std::same_as<std::optional<OutOfAgent>>; // where the pc is behind the entry's start; nothing: memory cannot be read
    { D::leave(stub, address, address, registers, code) } -> std::same_as<OutOfStub>;          // site, where the stub is, of a thread whose pc is in it; the bytes at its stack pointer
};
// clang-format on

} // namespace ktrace::arch
