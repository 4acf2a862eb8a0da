#include "engine/space/address_space_state.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "recovery/injected_call.h"
#include "recovery/remains.h"

namespace ktrace::engine {

using arch::Host;
using arch::Method;

Site *AddressSpaceState::site_of_pc_in_slot(VirtAddr pc) {
    auto slot = slots.slot_at(pc);
    if (!slot) return nullptr;
    auto found = by_slot.find(*slot);
    return found == by_slot.end() ? nullptr : found->second;
}

Result<Host::Plan> plan_instruction(const AddressSpaceState &space, Memory &memory, VirtAddr at) {
    auto known = space.sites.find(at);
    // The code that it was planned for may be gone since: another library may have taken the place of the first.
    if (known != space.sites.end() && !known->second->is_only_planned()) return known->second->plan;
    std::byte code[Host::longest];
    std::size_t got = memory.read(at, code);
    if (got == 0) return fail(Error::Kind::fault, "the address is not mapped");
    const Host::Plan plan = Host::plan(std::span(code, got), at);
    if (plan.method == Method::refuse) return fail(Error::Kind::refused, plan.why);
    return plan;
}

Result<Site *> make_site(AddressSpaceState &space, VirtAddr at) {
    auto plan = plan_instruction(space, *space.memory, at);
    if (!plan) return tl::make_unexpected(plan.error());
    auto &site = space.sites[at];
    if (!site) site = std::make_unique<Site>();
    site->at = at;
    site->plan = *plan;
    return site.get();
}

bool give_slot(AddressSpaceState &space, Site &site) {
    if (site.slot || !arch::takes_slot(site.plan)) return true;
    auto slot = space.slots.take(site.at);
    if (!slot) return false;
    site.slot = *slot;
    site.placed = Host::place(site.plan, site.at, *slot);
    space.by_slot[*slot] = &site;
    return true;
}

namespace {

/// Writes the means to step over the site: the copy in its slot, the entry in the recovery page. Errors: refused.
Status furnish(AddressSpaceState &space, Site &site) {
    if (site.left) return {};
    if (!give_slot(space, site))
        return fail(Error::Kind::refused, "there is no place for its instruction within reach");
    if (site.slot) {
        if (site.placed.method == Method::refuse) return fail(Error::Kind::refused, site.placed.why);
        if (!space.memory->write_own(site.slot, std::span(site.placed.bytes, site.placed.size)))
            return fail(Error::Kind::refused, "its slot cannot be written");
    }
    if (!list_in_recovery(space, site)) return fail(Error::Kind::refused, "the recovery page cannot be written");
    return {};
}

} // namespace

bool list_in_recovery(AddressSpaceState &space, const Site &site) {
    if (!space.recovery.mapped()) return true;
    ktrace_recovery_entry entry = Host::recovery_entry(site.plan, site.placed, site.at, site.slot);
    entry.is_of_jump = space.jumps && space.jumps->over(site.at) ? 1 : 0;
    return space.recovery.add(*space.memory, entry);
}

Status arm(AddressSpaceState &space, Site &site) {
    give_way(space, site.at);
    if (site.armed) return {};
    if (auto ready = furnish(space, site); !ready) return ready;
    auto planted = space.memory->plant(site.at, Host::trap_bytes());
    if (!planted) return planted;
    site.armed = true;
    return {};
}

void disarm(AddressSpaceState &space, Site &site) {
    if (!site.armed) return;
    give_way(space, site.at);
    space.memory->unplant(site.at);
    site.armed = false;
}

Status prepare_recovery(AddressSpaceState &space, target::Process &process, os::Waiter &waiter, os::Stopped &stopped,
                        std::size_t sites) {
    space.recovery_tried = true;
    if (!process.syscall_instruction) return {};
    bool first = !space.recovery.mapped();
    auto made = space.recovery.ensure({*space.memory, *process.syscall_instruction, waiter, stopped}, sites);
    if (!made && first && made.error().kind != Error::Kind::gone) {
        KT_LOG_INFO("no recovery page: " + made.error().message);
        return {};
    }
    return made;
}

bool recovery_has_room(const AddressSpaceState &space, std::size_t sites) {
    return space.recovery.mapped() ? space.recovery.room() >= sites : space.recovery_tried;
}

void note_pageless_trap(recovery::Ledger *ledger, Pid pid, AddressSpaceState &space, VirtAddr at) {
    if (!ledger || space.recovery.mapped()) return;
    recovery::PagelessTrap trap{pid, at, {}, 0};
    trap.size = space.memory->read(at, std::span(trap.original).first(Host::trap_bytes().size()));
    ledger->note(trap);
}

namespace {

const char *why_not_mapped(int error) {
    switch (error) {
    case ENOMEM: return "it has as much as RLIMIT_AS, vm.max_map_count or its cgroup allows";
    case EAGAIN: return "it locks all that it maps (mlockall), and has locked as much as RLIMIT_MEMLOCK allows";
    default: return "a seccomp filter forbids it, perhaps; root may map in spite of it";
    }
}

} // namespace

Result<bool> map_at(const recovery::Hands &hands, const recovery::Page &page, VirtAddr at, std::uint64_t size) {
    auto mapped = recovery::call_with_way_back(
        hands.waiter, hands.stopped, hands.syscall_instruction, page, hands.space, SYS_mmap,
        {at.value, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, ~std::uint64_t{0},
         0});
    if (!mapped) return tl::make_unexpected(mapped.error());
    if (*mapped == -EEXIST) return false;
    if (*mapped < 0 && *mapped > -4096)
        return fail(Error::Kind::refused,
                    std::string("the process may not map memory: ") + std::strerror(static_cast<int>(-*mapped)),
                    why_not_mapped(static_cast<int>(-*mapped)));
    auto is_there = recovery::check_mapped(Pid{hands.stopped.tid().value}, at, size);
    return is_there ? Result<bool>(true) : tl::make_unexpected(is_there.error());
}

Status map_arena(AddressSpaceState &space, target::Process &process, os::Waiter &waiter, os::Stopped &stopped,
                 VirtAddr low, VirtAddr high, std::size_t slots) {
    constexpr std::size_t least = 65536;
    std::size_t size = (std::max(slots * arch::slot_size, least) + 4095) & ~std::size_t{4095};
    if (!process.syscall_instruction)
        return fail(Error::Kind::refused, "the process has no system call instruction that ktrace could use");
    for (int attempt = 0; attempt < 4; attempt++) {
        auto maps = os::read_maps(process.pid);
        if (!maps) return fail(Error::Kind::gone, "the process has ended");
        process.maps = std::move(*maps);
        auto at = place_arena(process.maps, low, high, size);
        if (!at) return fail(Error::Kind::refused, "there is no free address space near the code");
        auto mapped = map_at({*space.memory, *process.syscall_instruction, waiter, stopped}, space.recovery, *at, size);
        if (!mapped) return tl::make_unexpected(mapped.error());
        if (!*mapped) continue; // the process has mapped something there meanwhile: look again
        space.slots.add({*at, size, 0});
        space.recovery.add_arena(*space.memory, *at, size);
        return {};
    }
    return fail(Error::Kind::refused, "the address space near the code changes too fast");
}

Result<bool> forget_lost(AddressSpaceState &space, Pid pid) {
    const auto maps = os::read_maps(pid);
    if (!maps) return fail(Error::Kind::gone, "the process has ended");
    std::vector<Arena> lost;
    for (const Arena &arena : space.slots.arenas())
        if (!recovery::may_be_ours(*maps, arena.start.value, arena.size)) lost.push_back(arena);
    space.slots.lose(lost);
    return space.recovery.forget_lost(*maps, *space.memory) || !lost.empty();
}

namespace {

/// The bytes of an arena, as far as its slots were handed out. Nothing: it is not there.
std::optional<std::vector<std::byte>> read_slots(const Arena &arena, target::AddressSpace &space) {
    std::vector<std::byte> held(arena.is_whole ? 0 : arena.used);
    std::byte last{};
    const bool is_there = space.read(arena.end() - 1, std::span(&last, 1)) == 1;
    if (!is_there || space.read(arena.start, held) != held.size()) return std::nullopt;
    return held;
}

bool are_slots_there(const AddressSpaceState &from, target::AddressSpace &space) {
    for (const Arena &arena : from.slots.arenas()) {
        const auto held = read_slots(arena, space);
        if (!held) return false;
        for (const auto &[slot, site] : from.by_slot) {
            if (slot < arena.start || arena.end() <= slot) continue;
            const std::byte *in_slot = held->data() + (slot.value - arena.start.value);
            if (std::memcmp(in_slot, site->placed.bytes, site->placed.size) != 0) return false;
        }
    }
    return true;
}

/// Writes the page again, unless the program has mapped something of its own there.
bool rewrite_page(const recovery::Page &page, target::AddressSpace &space) {
    return !page.mapped() || (page.is_there(space) && page.write_all(space));
}

Status map_again(const AddressSpaceState &from, const recovery::Hands &child) {
    const Pid pid{child.stopped.tid().value};
    const auto maps = os::read_maps(pid);
    if (!maps) return fail(Error::Kind::gone, "the process has ended");
    auto mappings = from.recovery.mappings();
    for (const Arena &arena : from.slots.arenas()) mappings.emplace_back(arena.start, arena.size);
    for (const auto &[start, size] : mappings) {
        if (recovery::may_be_ours(*maps, start.value, size)) continue;
        auto mapped = map_at(child, from.recovery, start, size);
        if (!mapped) return tl::make_unexpected(mapped.error());
        if (!*mapped && from.slots.contains(start))
            return fail(Error::Kind::refused, "it has memory of its own where ktrace's is in its parent");
    }
    return {};
}

} // namespace

void rewrite_wiped(const AddressSpaceState &child, Pid pid) {
    if (!child.recovery.mapped() || child.recovery.is_there(*child.memory)) return;
    const auto maps = os::read_maps(pid);
    if (maps && child.recovery.is_wiped(*maps, *child.memory)) child.recovery.write_all(*child.memory);
}

Status complete_copy(const AddressSpaceState &from, const recovery::Hands &child) {
    if (rewrite_page(from.recovery, child.space) && are_slots_there(from, child.space)) return {};
    if (auto mapped = map_again(from, child); !mapped) return mapped;
    const auto maps = os::read_maps(Pid{child.stopped.tid().value});
    if (!maps) return fail(Error::Kind::gone, "the process has ended");
    const bool is_ours = from.recovery.is_there(child.space) || from.recovery.is_wiped(*maps, child.space);
    bool written = !is_ours || from.recovery.write_all(child.space);
    for (const auto &[slot, site] : from.by_slot)
        if (from.slots.contains(slot))
            written = written && child.space.write_own(slot, std::span(site->placed.bytes, site->placed.size));
    if (!written) return fail(Error::Kind::refused, "its parent's part of ktrace's memory cannot be written");
    return {};
}

Status unmap_arenas(AddressSpaceState &space, target::Process &process, os::Waiter &waiter, os::Stopped &stopped) {
    for (const Arena &arena : space.slots.arenas()) {
        auto answer = recovery::call_with_way_back(waiter, stopped, *process.syscall_instruction, space.recovery,
                                                   *space.memory, SYS_munmap, {arena.start.value, arena.size});
        if (!answer) return tl::make_unexpected(answer.error());
    }
    space.slots.clear();
    space.by_slot.clear();
    return {};
}

} // namespace ktrace::engine
