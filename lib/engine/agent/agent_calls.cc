#include "engine/agent/agent_calls.h"

#include <algorithm>

#include "agent/layout.h"
#include "engine/agent/agent_records.h"
#include "engine/space/jumps.h"
#include "engine/space/returns.h"

namespace ktrace::engine {

namespace {

/// The probe of a call; nullptr: it was taken out.
Attachment *attachment_of(Site *site, const Credit &credit) {
    if (!site) return nullptr;
    const auto found = std::ranges::find_if(site->attachments, [&](const Attachment *each) {
        return !each->dismissed && each->kind == Attachment::Kind::ret && each->location == credit.location;
    });
    return found == site->attachments.end() ? nullptr : *found;
}

/// Where the call is seen to return; nullptr: nowhere.
Site *return_site_of(AddressSpaceState &space, const agent::Call &call) {
    Site *site = space.site_at(VirtAddr{call.return_address});
    return site && site->armed && site->kept_for_returns && space.threads->is_of_now(call) ? site : nullptr;
}

/// In ns, which the thread has spent in hits and stops since the call began.
std::uint64_t cost_of(const Engine &engine, const agent::Thread &thread, const agent::Call &call) {
    return agent::in_ns(thread.cost - call.cost, engine.processor_clock.ns_per_tick());
}

struct Found {
    Attachment *attachment;
    Site *site, *return_site;
};

void begin(Engine &engine, Process &process, Task &task, const agent::Thread &thread, const agent::Call &taken,
           std::uint64_t inner, const Found &found) {
    Instance &call = process.space->returns.begin(task, {VirtAddr{taken.place}, VirtAddr{taken.return_address}});
    call.attachment = found.attachment;
    call.site = found.site;
    call.return_site = found.return_site;
    call.hit = std::uint64_t{1} << 63 | taken.begin; // as no stop has it
    call.start_ns = engine.processor_clock.monotonic_ns(taken.begin) + cost_of(engine, thread, taken);
    call.inner_ns = agent::in_ns(inner, engine.processor_clock.ns_per_tick());
    call.marks = task.clock.now;
    call.marks.stops--; // the stop at hand is inside
    call.is_recorded = call.injected = false;
    call.is_within = taken.is_nested != 0;
    call.captured.clear();
    if (taken.captured_at <= agent::captures_size && taken.captured_size <= agent::captures_size - taken.captured_at)
        call.captured.assign(thread.captures + taken.captured_at,
                             thread.captures + taken.captured_at + taken.captured_size);
    found.attachment->active++;
    found.return_site->returns++;
    found.return_site->last_return = engine.stops;
}

} // namespace

void take_over_calls(Engine &engine, Process &process, Task &task, VirtAddr up_to) {
    AddressSpaceState &space = *process.space;
    AgentThreads::Place *place = space.threads ? space.threads->of(task.tid) : nullptr;
    if (!place) return;
    const std::uint64_t count = agent::calls_of(place->thread->state);
    if (count == 0 || count > agent::most_calls || place->thread->call[count - 1].place > up_to.value) return;
    const std::vector<agent::Call> calls = space.threads->calls_of(*place);
    const auto is_older = [up_to](const agent::Call &each) { return each.place > up_to.value; };
    const auto older = static_cast<std::size_t>(std::ranges::find_if_not(calls, is_older) - calls.begin());
    if (older + 1 >= calls.size()) return;
    take_records(engine, process, task.tid); // of calls that have ended inside
    AgentThreads::keep_calls(*place, older);
    for (std::size_t i = older; i + 1 < calls.size(); i++) {
        const agent::Call &call = calls[i];
        if (call.number >= space.jumps->by_number.size()) continue;
        const NumberedRun &numbered = space.jumps->by_number[call.number];
        const Credit *const credit = numbered.credit();
        if (!credit) continue;
        program::Counters &counters = *credit->counters;
        counters.hits++;
        Site *const site = space.site_at(numbered.jump->at);
        const Found found{attachment_of(site, *credit), site, return_site_of(space, call)};
        if (found.attachment && found.return_site) {
            begin(engine, process, task, *place->thread, call, calls[i + 1].inner_after, found);
            continue;
        }
        counters.unreturned++;
        if (engine.closing || !found.attachment) counters.in_flight++; // then, or when its probe was taken out
    }
}

void doubt_all_calls(Engine &engine) {
    for (auto &[tid, task] : engine.tasks) task.calls.unwinds++;
}

void count_lost_calls(Engine &engine) {
    for (auto &[counters, calls] : engine.lost_calls) {
        counters->hits -= calls;
        counters->unreturned -= calls;
    }
    engine.lost_calls.clear();
    for (const auto &[pid, process] : engine.processes) {
        AddressSpaceState &space = *process->space;
        if (!space.threads || process->borrowed) continue;
        for (const auto &[tid, place] : space.threads->all()) {
            const std::vector<agent::Call> calls = space.threads->calls_of(place);
            for (std::size_t i = 0; i + 1 < calls.size(); i++) {
                if (calls[i].number >= space.jumps->by_number.size()) continue;
                const NumberedRun &numbered = space.jumps->by_number[calls[i].number];
                const Credit *const credit = numbered.credit();
                if (!credit) continue;
                Site *const site = space.site_at(numbered.jump->at);
                if (!attachment_of(site, *credit) || !return_site_of(space, calls[i]))
                    engine.lost_calls[credit->counters]++;
            }
        }
    }
    for (auto &[counters, calls] : engine.lost_calls) {
        counters->hits += calls;
        counters->unreturned += calls;
    }
}

bool has_agent_call(Process &process, const Task &task, const Attachment &attachment) {
    AddressSpaceState &space = *process.space;
    const AgentThreads::Place *place = space.threads ? space.threads->of(task.tid) : nullptr;
    if (!place) return false;
    const std::uint64_t count = std::min(agent::calls_of(place->thread->state), agent::most_calls);
    return std::any_of(place->thread->call, place->thread->call + count, [&](const agent::Call &each) {
        const std::uint32_t number = each.number; // the process could change it meanwhile
        if (number >= space.jumps->by_number.size()) return false;
        const Credit *const credit = space.jumps->by_number[number].credit();
        return credit && credit->location == attachment.location;
    });
}

bool add_to_agent_caller(const Engine &engine, Process &process, const Task &task, const Instance &call,
                         std::uint64_t ns) {
    const AgentThreads::Place *place = process.space->threads ? process.space->threads->of(task.tid) : nullptr;
    if (!place) return false;
    const std::uint64_t count = agent::calls_of(place->thread->state);
    if (count == 0 || count > agent::most_calls) return false;
    const std::uint64_t caller = place->thread->call[count - 1].place;
    if (call.older_call && call.older_call->frame.sp.value < caller) return false; // that one is younger
    place->thread->call[count].inner_after += agent::in_ticks(ns, engine.processor_clock.ns_per_tick());
    return true;
}

} // namespace ktrace::engine
