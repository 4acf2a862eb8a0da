// AddressSpaceState: everything of ktrace's in one address space: its memory, slots, sites and calls in flight. Shared
// by the processes that share the memory (vfork). A fork's child has copies of the traps, which are taken out or become
// its own.
//
// Invariants: a site is in `sites` as long as a task may still stop at it or be in its slot; a planted trap always has
// its site there.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/space/agent_threads.h"
#include "engine/space/jumps.h"
#include "engine/space/returns.h"
#include "engine/space/site.h"
#include "engine/space/slots.h"
#include "os/proc/procfs.h"
#include "os/tracee/stopped.h"
#include "recovery/ledger.h"
#include "recovery/page.h"
#include "target/process.h"

namespace ktrace::engine {

/// A site whose memory is gone, kept for the tasks that may still be in its slot.
struct RetiredSite {
    std::unique_ptr<Site> site;
    std::uint64_t moment = 0; // when (by count of stops)
};

/// Data that is watched in this address space.
struct Watchpoint {
    std::uint32_t id = 0; // of this address space; never used again
    Attachment *attachment = nullptr;
    VirtAddr at; // in_thread: an offset from each thread's thread pointer
    bool in_thread = false;
    std::vector<arch::WatchRegister> parts;                   // their addresses are offsets from `at`
    std::unordered_map<pid_t, std::vector<std::byte>> values; // as last seen, by thread; 0: of all
};

/// A function in Go has found its stack too small and has jumped back to its first instruction. The hit there with this
/// stack pointer is the same call, in whichever thread its goroutine runs by then.
struct Restart {
    VirtAddr function, sp;
};

struct AddressSpaceState {
    std::shared_ptr<target::AddressSpace> memory;
    Slots slots;
    recovery::Page recovery; // the page that restores it when ktrace is killed
    bool recovery_tried = false;
    std::unordered_map<VirtAddr, std::unique_ptr<Site>> sites;
    std::unordered_map<VirtAddr, Site *> by_slot; // start of the slot → its site
    std::vector<RetiredSite> retired_sites;       // for calls/retired_sites.cc
    Returns returns;
    std::vector<Restart> restarts;                            // for calls/goroutines.cc
    std::vector<Watchpoint> watches;                          // for watch/watch.cc
    std::uint32_t watch_generation = 0;                       // counts their changes
    std::uint32_t last_watch = 0;                             // id
    std::unordered_map<VirtAddr, bool> caller_ok;             // return addresses may be trapped there
    std::unordered_map<VirtAddr, VirtAddr> call_instructions; // before return addresses; 0: none is known
    std::map<std::uint32_t, int> enclosing_calls;             // in flight, by the number of the probe that encloses
    std::uint32_t return_sites = 0;                           // kept for returns
    std::uint32_t new_returns = 0;                            // of these, for lib/upgrade
    bool follows_calls = false;                               // the agent does: return sites become jumps, too
    std::uint32_t return_probes = 0;                          // that are on: calls are looked at
    std::uint32_t timed_probes = 0;                           // of these: calls are timed
    std::shared_ptr<Jumps> jumps;                             // nullptr: there never was one
    std::shared_ptr<AgentThreads> threads;                    // nullptr: no agent is there
    const char *why_no_jumps = nullptr;                       // there may be none any more
    bool has_new_probes = false;                              // for lib/upgrade: there is something to do

    Site *site_at(VirtAddr at) {
        auto found = sites.find(at);
        return found == sites.end() ? nullptr : found->second.get();
    }
    Site *site_of_pc_in_slot(VirtAddr pc);
};

/// How a task would step over the instruction at `at`, of a site that is there or of one that may be made. `memory`
/// reads the address space. Errors: fault, refused (why).
Result<arch::Host::Plan> plan_instruction(const AddressSpaceState &space, Memory &memory, VirtAddr at);

/// Plans the instruction at `at` and makes a site of it, without a slot and not armed. Errors: fault, refused (why).
Result<Site *> make_site(AddressSpaceState &space, VirtAddr at);

/// Lists the site's trap in the recovery page, or how it is now. False: the page cannot be written.
bool list_in_recovery(AddressSpaceState &space, const Site &site);

/// Gives the site its slot, where it needs one. False: no slot within reach is free; map an arena first.
bool give_slot(AddressSpaceState &space, Site &site);

/// Makes room in the recovery page for `sites` more: each is entered before its trap is planted. A process that may not
/// map memory is traced without that page. Errors: gone, refused (there are too many).
Status prepare_recovery(AddressSpaceState &space, target::Process &process, os::Waiter &waiter, os::Stopped &stopped,
                        std::size_t sites);

/// True where that needs no stopped task.
bool recovery_has_room(const AddressSpaceState &space, std::size_t sites);

/// Notes a trap in the ledger that is to be planted, where no page has it. `ledger` may be nullptr.
void note_pageless_trap(recovery::Ledger *ledger, Pid pid, AddressSpaceState &space, VirtAddr at);

/// Plants the trap. There is a slot for the site, and the recovery page has room for it. Errors: refused.
Status arm(AddressSpaceState &space, Site &site);
/// Takes the trap out. The site stays known: the stops of tasks at it or in its slot can still be classified.
void disarm(AddressSpaceState &space, Site &site);

/// Maps code of ktrace's at a place. False: something else is there. Errors: refused, gone.
Result<bool> map_at(const recovery::Hands &hands, const recovery::Page &page, VirtAddr at, std::uint64_t size);

/// Maps an arena for `slots` more slots near [low, high) by a system call of the stopped task. Errors: refused (no
/// room, mmap is forbidden), gone.
Status map_arena(AddressSpaceState &space, target::Process &process, os::Waiter &waiter, os::Stopped &stopped,
                 VirtAddr low, VirtAddr high, std::size_t slots);
/// Forgets arenas and the page if they are not there any more: the program has unmapped them, or mapped something of
/// its own over them. False: there was nothing to forget. Errors: gone.
Result<bool> forget_lost(AddressSpaceState &space, Pid pid);
/// Gives a fork's child the arenas and the page that the program has kept from it (MADV_DONTFORK, MADV_WIPEONFORK): the
/// child's traps lead there. `from`: its parent's. Call it before the child runs. Errors: refused (why), gone.
Status complete_copy(const AddressSpaceState &from, const recovery::Hands &child);
/// Writes the page of a fork's child again where it is zeros, so that it is known as ktrace's.
void rewrite_wiped(const AddressSpaceState &child, Pid pid);
/// Unmaps all arenas. No task is in one.
Status unmap_arenas(AddressSpaceState &space, target::Process &process, os::Waiter &waiter, os::Stopped &stopped);

} // namespace ktrace::engine
