#include "upgrade/countable.h"

#include <algorithm>

#include "agent/layout.h"
#include "engine/space/address_space_state.h"
#include "jump/words.h"
#include "os/self/processor_clock.h"
#include "program/tables/state.h"
#include "upgrade/agent_programs.h"

namespace ktrace::upgrade {

using engine::Attachment;
using program::Moment;

namespace {

Moment moment_of(const Attachment &attachment) {
    if (attachment.kind == Attachment::Kind::ret) return Moment::call;
    return attachment.kind == Attachment::Kind::probe ? Moment::pre : Moment::entry;
}

/// Its stub counts, and that is all.
bool only_counts(const Attachment &attachment) {
    if (attachment.kind == Attachment::Kind::ret || attachment.inside != 0) return false;
    const program::Image image = attachment.program->image();
    const auto &moment = image.moment(moment_of(attachment));
    return moment.aggregates && !moment.has_value && !moment.has_condition && !moment.selects &&
           moment.key.count == 0 && moment.injections.count == 0 &&
           attachment.state->aggregation.kind() == program::Table::Kind::count;
}

/// Of the program at the return.
const char *why_not_return(const Attachment &attachment, const program::Image &image) {
    if (attachment.kind != Attachment::Kind::ret) return nullptr;
    if (attachment.maxactive < Attachment::usual_maxactive) return "calls in flight are counted (--maxactive)";
    return why_stops(image, Moment::ret);
}

const char *why_not(const Attachment &attachment) {
    if (attachment.handler) return "a plugin's handler runs there";
    if (attachment.encloses != 0) return "calls of --inside's function begin there";
    if (!attachment.program || !attachment.counters || !attachment.state) return "it is no probe that counts";
    const program::Image image = attachment.program->image();
    if (image.moment(Moment::post).needs.runs) return "the moment behind the instruction is asked for";
    if (only_counts(attachment)) return nullptr;
    const char *const why = why_stops(image, moment_of(attachment));
    return why ? why : why_not_return(attachment, image);
}

/// The agent stamps each hit that does more than count.
const char *why_no_time() {
    static const bool is_steady = os::ProcessorClock::is_steady();
    return is_steady ? nullptr : "the processor's time stamp counter is not steady";
}

} // namespace

bool is_return_site(const engine::Site &site) {
    return site.kept_for_returns && !site.exit && site.attachments.empty();
}

const char *why_not_countable(const engine::Site &site) {
    const bool returns = is_return_site(site);
    if (!returns && (site.exit || site.kept_for_returns || site.returns > 0))
        return "calls of a return probe end there";
    if (site.doubtful > 0) return "a call there is doubtful";
    if (std::ranges::any_of(site.internal, [](const engine::InternalBreakpoint *each) { return each->on; }))
        return "ktrace has a breakpoint of its own there";
    if (returns) return why_no_time();
    std::size_t on = 0, counting = 0, following = 0;
    for (const Attachment *attachment : site.attachments) {
        if (!attachment->on) continue;
        if (const char *why = why_not(*attachment)) return why;
        on++;
        if (only_counts(*attachment)) counting++;
        if (attachment->kind == Attachment::Kind::ret) following++;
    }
    if (following > 1) return "several return probes are there";
    if (on > agent::records_at_once && counting != on) return "many probes are there, and not all only count";
    if (on == 0) return "its probes are off";
    return counting == on ? nullptr : why_no_time();
}

std::vector<engine::AgentRun> runs_of(const engine::Site &site) {
    if (is_return_site(site)) return {engine::AgentRun{{}, Moment::ret, 0, {}, {}, 0}};
    std::vector<engine::AgentRun> runs;
    bool all_count = true;
    for (const Attachment *attachment : site.attachments) {
        if (!attachment->on) continue;
        runs.push_back({*attachment->program, moment_of(*attachment), 0, {}, {}, attachment->inside});
        all_count = all_count && only_counts(*attachment);
    }
    if (all_count) runs.clear();
    return runs;
}

std::vector<engine::Credit> credits_of(const engine::Site &site) {
    std::vector<engine::Credit> credits;
    for (const Attachment *attachment : site.attachments)
        if (attachment->on) credits.push_back({attachment->counters, attachment->state, attachment->location});
    return credits;
}

bool is_in_the_way(const engine::Site &site) {
    const bool is_idle = site.attachments.empty() && !site.exit && !site.kept_for_returns && site.doubtful == 0 &&
                         site.returns == 0 &&
                         std::ranges::all_of(site.internal, [](const engine::InternalBreakpoint *each) {
                             return !each->on || each->purpose == &engine::jump_boundary;
                         });
    return !is_idle;
}

bool may_become(const engine::AddressSpaceState &space, const engine::Jump &jump) {
    const auto site = space.sites.find(jump.at);
    if (site == space.sites.end() || !site->second->armed || why_not_countable(*site->second)) return false;
    for (std::int64_t offset = 1; offset < jump.window.length; offset++) {
        const auto other = space.sites.find(jump.at + offset);
        if (other != space.sites.end() && is_in_the_way(*other->second)) return false;
    }
    return true;
}

std::optional<std::string> why_trap(const trace::Trace &trace, const engine::AddressSpaceState &space, VirtAddr at) {
    if (space.jumps && space.jumps->is_on(at)) return std::nullopt;
    if (trace.config.engine == trace::Config::Engine::trap) return "jumps are not asked for (--engine auto)";
    const auto site = space.sites.find(at);
    if (site == space.sites.end()) return "it has no site";
    if (const char *why = why_not_countable(*site->second)) return why;
    if (space.jumps)
        if (auto refused = space.jumps->refused.find(at); refused != space.jumps->refused.end())
            return refused->second.words ? std::string(refused->second.words)
                                         : std::string(jump::words(refused->second.why));
    return "it is under way";
}

} // namespace ktrace::upgrade
