// Jumps: the sites of one address space where a jump has taken the trap's place. It leads to a stub in the process
// (arch/isa_detour.h) that counts the hit and goes on: no task stops. Planted by lib/upgrade.
//
// The bytes of a jump are plants as a trap's are (target/address_space.h): the site's own, the trap of each inner
// boundary, which has a Site of its own, and the others, here called its tail.
//
// Invariants: (1) a tail is there only while a trap or the jump is at the site and a trap at each inner boundary, since
// before every processor was synchronized, until behind the next time; (2) stubs, landings and counters stay as they
// are until the process is left: a thread may be in one at any time; (3) a jump is lifted before anything is planted
// within its window, and before its site changes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "arch/host.h"
#include "base/addr.h"
#include "base/fd.h"
#include "program/run/program.h"
#include "target/address_space.h"

namespace ktrace::engine {

struct AddressSpaceState;
struct InternalPurpose;

/// At inner boundaries: nothing is done there but to go on in the displaced copy.
extern const InternalPurpose jump_boundary;

/// Shared memory of the process that stubs count in, as arch/isa_detour.h lays it out. It outlives the process.
struct CounterBlock {
    static constexpr std::size_t capacity = arch::counter_row_size / sizeof(std::uint64_t);
    static constexpr std::size_t size = arch::counter_rows * arch::counter_row_size; // bytes

    Fd file;
    VirtAddr address; // of it in the process
    std::size_t used = 0;

    /// Each counter's sum over the rows. The process can write there: the numbers are only numbers.
    std::vector<std::uint64_t> sums() const;
};

/// Memory for the stubs of sites that are near to each other, and their counters, in this order: the counters' name,
/// records for the recovery page, stubs; the agent, the SiteCodes of the sites whose hits it sees to, images of their
/// programs; then the CounterBlock.
struct JumpArea {
    VirtAddr start, records, stubs, agent, site_codes, images, counters;
    std::size_t capacity = 0;                             // sites
    VirtAddr next;                                        // of the stubs: where the next one lies
    std::size_t site_codes_room = 0, site_codes_used = 0; // the agent is there where `agent` is not 0
    VirtAddr next_image;
    std::map<program::Program, VirtAddr> image_at;
    std::shared_ptr<CounterBlock> block; // its address is known before it has a file

    std::size_t code_size() const { return static_cast<std::size_t>(counters - start); }
    bool has_agent() const { return static_cast<bool>(agent); }
    bool is_mapped() const { return static_cast<bool>(block->file); }
};

/// Where the hits of a jump are counted for the user. Both outlive the trace's processes.
struct Credit {
    program::Counters *counters = nullptr;
    program::ProbeState *state = nullptr;
    std::uint32_t location = 0; // index of the LocationInfo
};

/// A probe's program that the agent runs at each hit, in the place of the stub's counting.
struct AgentRun {
    program::Program program;
    program::Moment moment = program::Moment::pre;
    std::uint32_t number = 0; // of Jumps::by_number
    VirtAddr site_code, image;
    std::uint32_t inside = 0; // the number of the probe that follows calls of --inside's function; 0: there is none
};

struct Jump {
    enum class State : std::uint8_t {
        prepared, // stub and landing are written
        tailed,
        on,
        lifted, // the stub and the landing are as they were
    };
    VirtAddr at, landing, stub_at; // the landing may be the stub itself
    arch::Window window;
    std::vector<std::byte> code; // of the window
    arch::Stub stub;
    std::vector<AgentRun> runs;   // one for each credit, or where calls return to one; none: hits are only counted
    bool is_written = false;      // landing, stub and record are in the process
    std::vector<std::byte> bytes; // of the jump
    std::shared_ptr<CounterBlock> block;
    std::size_t index = 0;   // of its stub in the area
    std::size_t counter = 0; // its number there: of hits; with AgentRuns: of filtered ones, and behind it dropped ones
    std::uint64_t taken = 0, taken_dropped = 0; // of their sums
    std::uint64_t undone = 0, undone_dropped = 0;
    std::uint64_t come_backs_before = 0, most_come_backs = 1024; // stops at its boundaries where branches lead, until
                                                                 // it was planted; until it is looked at anew
    std::vector<Credit> credits;
    State state = State::prepared;

    VirtAddr end() const { return at + window.length; } // of its window
    bool has_runs() const { return !runs.empty(); }
    /// The agent runs something of that moment there.
    bool is_for(program::Moment moment) const;
};

/// The moment of its records and rows: where it sees calls begin, their returns.
inline program::Moment moment_of(const AgentRun &run) {
    return run.moment == program::Moment::call ? program::Moment::ret : run.moment;
}

/// One of a jump's AgentRuns, as records name it.
struct NumberedRun {
    const Jump *jump = nullptr;
    std::size_t index = 0;

    /// nullptr: it is a return site's, or has never been planted.
    const Credit *credit() const {
        return index < jump->runs.size() && index < jump->credits.size() ? &jump->credits[index] : nullptr;
    }
};

/// Why a site stays a trap.
struct Refusal {
    arch::NoJump why = arch::NoJump::not_built;
    const char *words = nullptr; // where it is none of those
};

struct Jumps {
    std::map<VirtAddr, std::unique_ptr<Jump>> at;
    std::vector<std::unique_ptr<Jump>> former; // lifted for good: a thread may still be in one's stub
    std::map<VirtAddr, Jump *> by_stub, by_landing;
    std::map<VirtAddr, Refusal> refused; // sites
    std::vector<JumpArea> areas;         // those that are planned, too
    std::vector<NumberedRun> by_number;  // those that are there, or were once
    VirtAddr threads_at;                 // where AgentThreads are, or are planned
    bool plants_boundaries = false;      // traps within windows are its own now

    /// The jump that a thread with this pc has taken: the pc is in its landing or its stub. nullptr: none.
    Jump *with(VirtAddr pc) const;
    /// The area in whose agent, or its entry, an address lies. nullptr: none.
    const JumpArea *with_agent_at(VirtAddr pc) const;
    /// The jump, planted or about to be, in whose window an address lies. nullptr: none.
    Jump *over(VirtAddr at) const;
    /// The site's jump, and a hit there stops no task.
    bool is_on(VirtAddr site) const;
    /// The site's jump, planted or about to be, is where calls return to: until it is on, a trap there sees them.
    bool sees_returns(VirtAddr site) const;
};

/// Writes the tail. A trap is at the site and at each inner boundary, and all processors have been synchronized since.
/// False: the memory could not be written, and nothing of the tail is there.
bool plant_tail(AddressSpaceState &space, Jump &jump);
/// Lets the site's trap become the jump. All processors have been synchronized since the tail was written.
bool plant_head(AddressSpaceState &space, Jump &jump);

/// Before anything is planted at an address, or a site there changes: a jump that covers it is lifted.
void give_way(AddressSpaceState &space, VirtAddr at);

/// Puts the trap in the place of each jump, and takes its tail out. The traps at inner boundaries stay. Returns after
/// two synchronizations, for all of them together; the target's threads run on.
void lift(AddressSpaceState &space, std::span<Jump *const> jumps);
void lift_all(AddressSpaceState &space);
/// The same for good. `why`: words that last.
void do_without_jumps(AddressSpaceState &space, const char *why);
/// In a fork's child, which has a copy of `from`'s memory and does not run yet: its jumps become traps.
void lift_copies(const AddressSpaceState &from, target::AddressSpace &child);
/// Code that is gone: nothing is written.
void forget_jumps(AddressSpaceState &space, VirtAddr start, VirtAddr end);

} // namespace ktrace::engine
