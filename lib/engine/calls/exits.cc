#include "engine/calls/exits.h"

#include <algorithm>
#include <vector>

#include "engine/calls/caller.h"
#include "engine/space/scan.h"

namespace ktrace::engine {

using arch::Host;

namespace {

bool is_jump(const Host::Plan &plan) { return plan.flow == arch::Flow::jump || plan.flow == arch::Flow::branch; }

bool is_within(const Attachment &attachment, VirtAddr at) {
    return attachment.function <= at && at < attachment.function_end;
}

} // namespace

bool watch_exits(Engine &engine, Process &process, Attachment &attachment, os::Stopped &stopped) {
    if (attachment.exits != Attachment::Exits::unknown) return attachment.exits == Attachment::Exits::watched;
    attachment.exits = Attachment::Exits::unwatchable;
    AddressSpaceState &space = *process.space;
    bool returns = false, is_clear = true;
    std::vector<VirtAddr> exits =
        instructions(*space.memory, attachment.function, attachment.function_end, [&](const Host::Plan &plan) {
            if (plan.flow == arch::Flow::ret) return returns = true;
            if (!is_jump(plan) || (plan.target && is_within(attachment, *plan.target))) return false;
            is_clear = is_clear && plan.method == arch::Method::emulate;
            return true;
        });
    if (!returns || !is_clear) return false;
    if (!recovery_has_room(space, exits.size()) &&
        !prepare_recovery(space, process.target, engine.waiter, stopped, exits.size()))
        return false;
    for (VirtAddr at : exits) {
        auto site = make_site(space, at);
        if (!site || is_in_sequence(process, **site)) return false;
        if (!give_slot(space, **site)) {
            auto mapped = map_arena(space, process.target, engine.waiter, stopped, attachment.function,
                                    attachment.function_end, exits.size());
            if (!mapped || !give_slot(space, **site)) return false;
        }
        note_pageless_trap(engine.ledger, process.target.pid, space, at);
        if (!arm(space, **site)) return false;
        (*site)->exit = true;
    }
    attachment.exits = Attachment::Exits::watched;
    return true;
}

bool leaves_unseen(Process &process, const Site &site, const Attachment &attachment, os::Stopped &stopped) {
    Host::Registers registers = stopped.registers();
    auto done = Host::emulate(site.plan, site.at, registers, *process.space->memory);
    if (done.outcome != arch::Emulated::Outcome::done) return false; // it faults there, in the function
    VirtAddr to = Host::pc(registers);
    if (is_within(attachment, to)) return false;
    const Site *next = process.space->site_at(to);
    return !next || std::none_of(next->attachments.begin(), next->attachments.end(), [](const Attachment *other) {
        return other->on && other->kind == Attachment::Kind::ret;
    });
}

} // namespace ktrace::engine
