#include "arming/inherit.h"

#include "engine/calls/consumers.h"
#include "engine/watch/watch.h"

namespace ktrace::arming {

namespace {

/// The site of a fork's child: armed where the child's memory holds the trap, though the parent may have lost or got it
/// since the fork.
std::unique_ptr<engine::Site> copy_site(engine::AddressSpaceState &space, const engine::Site &from) {
    auto site = std::make_unique<engine::Site>(from);
    site->returns = site->doubtful = 0;
    site->armed = space.memory->planted(from.at);
    if (site->armed && !from.armed) {
        space.memory->unplant(from.at);
        site->armed = false;
    }
    return site;
}

} // namespace

void inherit(trace::Trace &trace, const engine::Process &parent,
             const std::shared_ptr<engine::AddressSpaceState> &space) {
    engine::AddressSpaceState &from = *parent.space;
    trace::Arming &copied = trace.installed.armings[space.get()];
    std::unordered_map<const engine::Attachment *, engine::Attachment *> twins;
    std::unordered_map<const engine::InternalBreakpoint *, engine::InternalBreakpoint *> internal_twins;
    const trace::Arming &arming = trace.installed.armings[&from];
    for (const auto &location : arming.locations) {
        copied.locations.push_back(std::make_unique<trace::AttachedLocation>(*location));
        copied.locations.back()->attachment.active = 0;
        twins[&location->attachment] = &copied.locations.back()->attachment;
    }
    for (const auto &internal : arming.internal) {
        copied.internal.push_back(std::make_unique<engine::InternalBreakpoint>(*internal));
        internal_twins[internal.get()] = copied.internal.back().get();
    }
    copied.unwinders = arming.unwinders;
    copied.ifuncs = arming.ifuncs;
    for (const auto &[at, site] : from.sites) {
        auto twin = copy_site(*space, *site);
        std::erase_if(twin->attachments, [](const engine::Attachment *attachment) { return attachment->dismissed; });
        for (engine::Attachment *&attachment : twin->attachments) attachment = twins.at(attachment);
        for (engine::InternalBreakpoint *&internal : twin->internal) internal = internal_twins.at(internal);
        twin->kept_for_returns = twin->kept_for_returns && twin->armed;
        // The doubtful calls of its parent are not in flight in it.
        const bool was_for_doubt = site->doubtful > 0 && twin->armed && !engine::is_needed(*twin);
        if (was_for_doubt) engine::disarm(*space, *twin);
        const bool is_used = !twin->attachments.empty() || !twin->internal.empty();
        if (site->armed && !twin->armed && is_used && !was_for_doubt) static_cast<void>(engine::arm(*space, *twin));
        if (twin->slot) space->by_slot[twin->slot] = twin.get();
        if (twin->kept_for_returns) space->return_sites++;
        space->sites.emplace(at, std::move(twin));
    }
    for (const engine::Watchpoint &watch : from.watches)
        engine::add_watch(trace.engine, *space,
                          {0, twins.at(watch.attachment), watch.at, watch.in_thread, watch.parts, {}});
    space->caller_ok = from.caller_ok;
    space->call_instructions = from.call_instructions;
    space->return_probes = from.return_probes;
    space->timed_probes = from.timed_probes;
}

} // namespace ktrace::arming
