#include "engine/calls/caller.h"

#include <algorithm>

#include "base/log.h"
#include "engine/space/scan.h"
#include "target/modules.h"

namespace ktrace::engine {

using arch::Host;

namespace {

constexpr std::size_t sites_at_once = 2048; // the recovery page gets room for so many more

/// Unwinders know a signal frame by the bytes of the trampoline that its handler returns to.
bool is_signal_trampoline(AddressSpaceState &space, VirtAddr at) {
    auto trampoline = Host::signal_trampoline();
    std::vector<std::byte> code(trampoline.size());
    return space.memory->read(at, code) == code.size() && std::equal(code.begin(), code.end(), trampoline.begin());
}

/// True for code that comes from a file. No other code may be written: a JIT copies, patches and checks its own.
bool is_file_text(Process &process, VirtAddr at) {
    auto look = [&] {
        return std::any_of(process.target.maps.begin(), process.target.maps.end(), [&](const os::Mapping &m) {
            return m.contains(at) && m.executable && !(m.shared && m.writable) &&
                   (m.path.starts_with('/') || m.path == "[vdso]");
        });
    };
    if (look()) return true;
    auto maps = os::read_maps(process.target.pid);
    if (!maps) return false;
    process.target.maps = std::move(*maps);
    return look();
}

bool may_trap(Process &process, VirtAddr at) {
    AddressSpaceState &space = *process.space;
    auto [found, is_new] = space.caller_ok.try_emplace(at, false);
    if (is_new) found->second = is_file_text(process, at) && !is_signal_trampoline(space, at);
    return found->second;
}

VirtAddr find_call(Process &process, VirtAddr return_address) {
    const VirtAddr within = return_address - 1; // a call that does not return may be its function's last instruction
    const target::LoadedModule *loaded = target::module_at(process.target.modules, within);
    if (!loaded) return {};
    const auto function = loaded->module->function_at(within.value - loaded->bias);
    if (!function) return {};
    const VirtAddr start{function->start + loaded->bias};
    std::uint8_t last = 0; // the length of the last instruction, if it is a call
    auto calls = instructions(*process.space->memory, start, return_address, [&](const Host::Plan &plan) {
        last = plan.flow == arch::Flow::call ? plan.length : 0;
        return last != 0;
    });
    return last != 0 && !calls.empty() && calls.back() + last == return_address ? calls.back() : VirtAddr{};
}

} // namespace

VirtAddr direct_target(AddressSpaceState &space, VirtAddr return_address) {
    std::byte code[16];
    VirtAddr from = return_address - static_cast<std::int64_t>(sizeof code);
    std::size_t got = space.memory->read(from, code);
    if (got != sizeof code) return {};
    auto call = Host::call_before(code, return_address);
    if (!call || !call->target) return {};
    VirtAddr target = *call->target;
    std::byte stub[16];
    got = space.memory->read(target, stub);
    if (auto slot = Host::plt_target_slot(std::span(stub, got), target))
        if (auto bound = space.memory->read_value<std::uint64_t>(*slot)) return VirtAddr{*bound};
    return target;
}

VirtAddr call_instruction(Process &process, VirtAddr return_address) {
    auto [found, is_new] = process.space->call_instructions.try_emplace(return_address);
    if (is_new) found->second = find_call(process, return_address);
    return found->second;
}

bool is_in_sequence(Process &process, const Site &site) {
    const target::LoadedModule *loaded = target::module_at(process.target.modules, site.at);
    return loaded && loaded->module->in_sequence(site.at.value - loaded->bias, site.plan.length);
}

Site *trap_caller(Engine &engine, Process &process, VirtAddr at, os::Stopped &stopped) {
    AddressSpaceState &space = *process.space;
    if (Site *known = space.site_at(at); known && known->armed) {
        if (!(space.jumps && space.jumps->sees_returns(at))) give_way(space, at);
        return known;
    }
    if (!may_trap(process, at)) return nullptr;
    auto made = make_site(space, at);
    if (!made || is_in_sequence(process, **made)) return nullptr;
    Site &site = **made;
    if (!give_slot(space, site)) {
        constexpr std::size_t batch = 1024;
        auto mapped = map_arena(space, process.target, engine.waiter, stopped, at, at, batch);
        if (!mapped) {
            KT_LOG_WARN("no slots for return addresses: " + mapped.error().message);
            return nullptr;
        }
        if (!give_slot(space, site)) return nullptr;
    }
    if (!recovery_has_room(space, 1) && !prepare_recovery(space, process.target, engine.waiter, stopped, sites_at_once))
        return nullptr;
    note_pageless_trap(engine.ledger, process.target.pid, space, at);
    return arm(space, site) ? &site : nullptr;
}

} // namespace ktrace::engine
