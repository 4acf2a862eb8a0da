// A process with remains becomes a trace without probes, whose traps are out already. Then ktrace detaches from it, as
// at the end of any trace: that moves every task out of ktrace's pages before they are unmapped.
#include "session/repair.h"

#include <map>
#include <vector>

#include "base/text.h"
#include "lifecycle/events.h"
#include "lifecycle/fork.h"
#include "recovery/remains.h"
#include "trace/run_until.h"
#include "trace/tracing_thread.h"
#include "tracees/access_errors.h"
#include "tracees/detach.h"
#include "tracees/seize.h"

namespace ktrace::session {

using arch::Host;
using engine::AddressSpaceState;
using engine::Process;
using engine::Site;
using recovery::Left;

namespace {

/// The site of an entry, as far as a task in its slot needs it. An entry that no ktrace has written is left out: slots
/// begin where an instruction can, as traps do.
void recall_site(AddressSpaceState &space, const ktrace_recovery_entry &entry, bool is_of_this_build) {
    const VirtAddr at{entry.site};
    const auto trap = Host::trap_bytes();
    if (entry.trap_size == trap.size())
        space.memory->recall(at, std::as_bytes(std::span(entry.original)).first(trap.size()), trap);
    if (entry.slot == 0 || entry.slot % trap.size() != 0 || space.site_at(at)) return;
    if (!engine::make_site(space, at)) { // its memory is gone; the slot is not
        auto site = std::make_unique<Site>();
        site->at = at;
        site->plan.length = entry.length;
        space.sites.emplace(at, std::move(site));
    }
    Site &site = *space.site_at(at);
    site.slot = VirtAddr{entry.slot};
    site.placed = Host::place(site.plan, at, site.slot);
    // The entry has the slot's layout, as the version that wrote it knew it.
    site.placed.copy_at = entry.copy_at;
    site.placed.copy_end = entry.copy_end;
    site.placed.size = std::max(site.placed.size, entry.copy_end);
    site.left = is_of_this_build;
    space.by_slot[site.slot] = &site;
}

void recall(AddressSpaceState &space, const Left &left) {
    for (std::uint32_t i = 0; i < left.header.arenas; i++) {
        const ktrace_recovery_arena &arena = left.header.arena[i];
        space.slots.add({VirtAddr{arena.address}, arena.size, arena.size});
    }
    const bool is_ours = recovery::Page::is_of_this_build(*space.memory, left.page, left.header);
    for (const ktrace_recovery_entry &entry : left.entries) recall_site(space, entry, is_ours);
    space.recovery = recovery::Page::adopt(left.page, left.header);
}

/// Takes over the signals that were held, which are sent again, and the masks, which the tasks get back at detach.
void recall_saved(trace::Trace &trace, const std::vector<recovery::SavedState> &saved) {
    for (const recovery::SavedState &each : saved) {
        auto found = trace.engine.tasks.find(each.tid.value);
        if (found == trace.engine.tasks.end() || found->second.pid != each.pid) continue;
        engine::TaskSignals &signals = found->second.signals;
        if (each.has_mask) signals.saved_mask = each.mask;
        if (each.has_dispatch) signals.saved_dispatch = each.dispatch;
        if (each.has_signal) os::send_again(each.pid, each.tid, each.held);
    }
}

/// Takes out one page and all that belongs to it; of an empty Left: debug registers, masks and signals.
Status take_out_page(Pid pid, const Left &left, const std::vector<recovery::SavedState> &saved,
                     const trace::Voice &voice) {
    const trace::Config config;
    trace::Trace trace(config, voice, lifecycle::event_handlers);
    auto looked = tracees::look_at(trace, pid.value);
    if (!looked) return tl::make_unexpected(looked.error());
    Process &process = *(trace.engine.processes[pid.value] = std::move(*looked));
    trace.engine.mending = true;
    recall(*process.space, left);
    if (auto seized = tracees::seize_all(trace, process); !seized) return seized;
    if (auto sharing = lifecycle::adopt_sharers(trace, process); !sharing) return sharing;
    // Debug registers that it may have set: they are cleared at detach.
    for (auto &[tid, task] : trace.engine.tasks) {
        task.watches.generation = ~task.watches.generation;
        task.watches.registers.assign(1, 0);
    }
    recall_saved(trace, saved);
    tracees::detach_all(trace);
    tracees::serve_for_the_last_time(trace);
    return {};
}

/// Likewise, again and again for a moment where a handler of a signal is to return into the page's memory: it has soon
/// returned, mostly. Of the last time the user is shown why the page stays.
Status take_out_page_soon(Pid pid, const Left &left, const std::vector<recovery::SavedState> &saved,
                          const trace::Voice &voice) {
    constexpr int tries = 20;
    constexpr std::uint64_t between_ns = 20'000'000;
    std::vector<Error> complaints;
    trace::Voice kept = voice;
    kept.complain = [&complaints](const Error &error) { complaints.push_back(error); };
    for (int i = 0; i < tries; i++) {
        if (i != 0) trace::pause(between_ns);
        complaints.clear();
        const bool has_begun = i != 0; // signals are sent again once
        auto out = take_out_page(pid, left, has_begun ? std::vector<recovery::SavedState>{} : saved, kept);
        if (!out) return out;
        if (!recovery::read_left(pid, left.page)) break;
    }
    for (const Error &each : complaints) voice.complain(each);
    return {};
}

std::string counted(std::size_t n, const char *noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

std::string what_was_taken_out(Pid pid, const Repaired &repaired) {
    std::string what;
    if (repaired.traps != 0) what = counted(repaired.traps, "trap");
    if (repaired.mappings != 0) what += (what.empty() ? "" : ", ") + counted(repaired.mappings, "mapping");
    if (!what.empty()) what = ": " + what; // else watchpoints, a mask, signals that were held
    return "took out of process " + std::to_string(pid.value) + " what a killed ktrace had left" + what;
}

} // namespace

Result<Repaired> take_out(Pid pid, const trace::Voice &voice, const std::vector<recovery::SavedState> &saved,
                          bool pageless) {
    auto status = tracees::read_status_without_ending_tracer(pid.value);
    if (!status) return fail(tracees::unseen(pid.value));
    pid = Pid{status->tgid};
    Repaired repaired;
    // Another tracer owns the traps that are there; a zombie has none.
    if (status->tracer != 0 || os::has_ended(Tid{pid.value})) {
        const trace::Config config;
        trace::Trace trace(config, voice, lifecycle::event_handlers);
        auto looked = tracees::look_at(trace, pid.value);
        if (!looked) return tl::make_unexpected(looked.error());
    }
    auto left = recovery::find_left(pid);
    if (!left) return fail(left.error().kind == Error::Kind::denied ? tracees::denied(pid.value) : left.error());
    if (left->empty() && (pageless || !saved.empty())) // its last injected call has unmapped the page
        if (auto out = take_out_page(pid, Left{}, saved, voice); !out) return tl::make_unexpected(out.error());
    for (const Left &each : *left) repaired.traps += recovery::put_back(pid, each);
    for (const Left &each : *left) {
        const bool first = repaired.pages == 0; // tasks get their state back once
        if (auto out = take_out_page_soon(pid, each, first ? saved : std::vector<recovery::SavedState>{}, voice); !out)
            return tl::make_unexpected(out.error());
        if (recovery::read_left(pid, each.page)) { // the reason was printed
            repaired.stays = true;
            continue;
        }
        repaired.pages++;
        repaired.mappings += each.mappings;
    }
    return repaired;
}

void take_out_what_is_left(Pid pid, const trace::Voice &voice) {
    if (!tracees::refuse_frozen(pid)) return; // attaching reports it
    auto status = tracees::read_status_without_ending_tracer(pid.value);
    if (!status || status->tracer != 0) return; // attaching reports the reason
    auto left = recovery::find_left(Pid{status->tgid});
    if (!left || left->empty()) return;
    auto repaired = take_out(pid, voice);
    if (repaired && repaired->stays) return;
    if (repaired)
        voice.notice(what_was_taken_out(pid, *repaired));
    else
        voice.complain(repaired.error());
}

void mend_after(const recovery::Ledger &ledger, int signal, const trace::Voice &voice) {
    std::map<pid_t, std::size_t> restored; // traps, by process
    for (const recovery::PagelessTrap &trap : ledger.pageless_traps())
        restored[trap.pid.value] += recovery::put_back(trap) ? 1 : 0;
    const std::vector<recovery::Covered> covered = ledger.covered();
    std::vector<std::size_t> traps;
    for (const recovery::Covered &each : covered) {
        auto left = recovery::read_left(each.pid, each.page);
        traps.push_back(left ? recovery::put_back(each.pid, *left) : 0);
    }
    voice.complain(
        {Error::Kind::system, "the tracing process was killed by " + text::signal_name(signal), {}, {}, -1, 1});
    for (const auto &[pid, count] : restored)
        if (count != 0) voice.notice(what_was_taken_out(Pid{pid}, {.traps = count}));
    for (std::size_t i = 0; i < covered.size(); i++) {
        const bool pageless = covered[i].page.value == 0;
        auto repaired = take_out(covered[i].pid, voice, ledger.saved(covered[i].pid), pageless);
        if (!repaired && repaired.error().kind != Error::Kind::gone &&
            repaired.error().kind != Error::Kind::not_found) {
            Error error = repaired.error();
            if (error.kind == Error::Kind::denied)
                error.hint =
                    "its remains are taken out, as root, by: ktrace repair -p " + std::to_string(covered[i].pid.value);
            voice.complain(error);
            continue;
        }
        if (!repaired || pageless) continue;
        repaired->traps += traps[i];
        if (repaired->pages == 0 && repaired->traps == 0) continue; // it shares the memory of one that was reported
        voice.notice(what_was_taken_out(covered[i].pid, *repaired));
    }
}

int repair(pid_t pid, const trace::Voice &voice) {
    int status = 1;
    auto started = trace::in_tracing_thread([&] {
        auto thawed = tracees::refuse_frozen(Pid{pid});
        auto repaired = thawed ? take_out(Pid{pid}, voice) : tl::make_unexpected(thawed.error());
        if (!repaired) {
            voice.complain(repaired.error());
            return;
        }
        if (repaired->stays) return;
        status = 0;
        voice.notice(repaired->pages != 0 ? what_was_taken_out(Pid{pid}, *repaired)
                                          : "nothing to repair in process " + std::to_string(pid));
    });
    if (!started) voice.complain(started.error());
    return status;
}

} // namespace ktrace::session
