#include "session/attach.h"

#include <algorithm>
#include <unordered_set>

#include <sched.h>

#include "arming/install.h"
#include "arming/modules_changed.h"
#include "arming/planning.h"
#include "arming/registry.h"
#include "base/clock.h"
#include "base/text.h"
#include "lifecycle/exec_and_loader.h"
#include "lifecycle/fork.h"
#include "os/self/own_signals.h"
#include "target/loader.h"
#include "trace/downloads.h"
#include "tracees/access_errors.h"
#include "tracees/seize.h"

namespace ktrace::session {

using engine::Process;

namespace {

/// True where a probe that may be in any module has no place in a plan.
bool lacks_some(const trace::Trace &trace, const arming::InstallPlan &plan) {
    std::unordered_set<std::uint32_t> found;
    for (const arming::PlannedLocation &location : plan.locations) found.insert(location.probe);
    for (const trace::WaitingIfunc &ifunc : plan.ifuncs) found.insert(ifunc.probe);
    auto numbers = trace.registry.present();
    return std::any_of(numbers.begin(), numbers.end(), [&](std::uint32_t number) {
        return trace.registry.at(number).probe.spec.module.empty() && !found.contains(number);
    });
}

/// The plan of all probes. In a process that was started a moment ago nothing is armed before all probes are found, or
/// the loader has mapped all of the program's libraries.
Result<arming::InstallPlan> plan_all(trace::Trace &trace, Process &process) {
    bool complete = target::modules_complete(process.target);
    auto plan = arming::make_plan(trace, process, trace.registry.present(),
                                  complete ? arming::Missing::refuse : arming::Missing::wait);
    bool waits = plan && !complete && (lacks_some(trace, *plan) || !trace.config.plugins.empty());
    trace.installed.armings[process.space.get()].waits_for_loader = waits;
    if (!waits) return plan;
    return arming::InstallPlan{};
}

/// Looks at a process anew: it called exec after the first look and before it was seized.
Status look_anew(trace::Trace &trace, Process &process) {
    auto looked = tracees::look_at(trace, process.target.pid.value);
    if (!looked) return tl::make_unexpected(looked.error());
    trace.installed.armings.erase(process.space.get());
    process.target = std::move((*looked)->target);
    process.space = std::move((*looked)->space);
    return {};
}

/// True where libraries have come or gone since the process was looked at.
Result<bool> has_other_modules(trace::Trace &trace, Process &process) {
    const std::size_t modules = process.target.modules.size();
    auto loaded = arming::refresh_modules(trace, process);
    if (!loaded) return fail(loaded.error());
    return !loaded->empty() || process.target.modules.size() != modules;
}

/// The plan of a process whose loader is watched. Where the loader is still at work, the modules that it is unmapping
/// or mapping are left alone: all is armed when it has ended.
Result<arming::InstallPlan> plan_watched(trace::Trace &trace, Process &process) {
    const bool unloads = trace.installed.armings[process.space.get()].unloads = target::is_unloading(process.target);
    auto plan = unloads ? Result<arming::InstallPlan>(arming::InstallPlan{}) : plan_all(trace, process);
    const bool waits = unloads || (!plan && !target::modules_complete(process.target));
    if (!waits) return plan;
    trace.installed.armings[process.space.get()].waits_for_loader = true;
    return arming::InstallPlan{};
}

/// `plan`: nothing where the process changed too often for one to be made. `stopped`: a task of the process.
Status watch_and_install(trace::Trace &trace, Process &process, std::optional<arming::InstallPlan> plan,
                         os::Stopped &stopped) {
    if (tracees::became_another(process)) {
        if (auto looked = look_anew(trace, process); !looked) return looked;
        plan.reset();
    }
    // From here on no library comes or goes unseen. Where one has since the process was looked at, a new plan is made.
    if (auto watched = arming::watch_loader(trace, process, &stopped); !watched) return watched;
    auto others = has_other_modules(trace, process);
    if (!others) return tl::make_unexpected(others.error());
    if (!plan || *others || trace.installed.armings[process.space.get()].waits_for_loader ||
        target::is_unloading(process.target)) {
        auto anew = plan_watched(trace, process);
        if (!anew) return tl::make_unexpected(anew.error());
        plan = std::move(*anew);
    }
    return arming::install(trace, process, std::move(*plan), &stopped);
}

void announce_attached(trace::Trace &trace, const Process &process) {
    trace::Arming &arming = trace.installed.armings[process.space.get()];
    arming.told_to_wait = arming.waits_for_loader;
    const char *waits_for = arming.unloads ? "unloading libraries: its probes wait until that is done"
                                           : "being started: its probes wait until its libraries are loaded";
    if (arming.waits_for_loader) // reported when all is armed
        trace::tell_once(trace, "process " + std::to_string(process.target.pid.value) + " (" +
                                    text::escape(process.target.comm) + ") is just " + waits_for);
    else if (trace.config.plugins.empty()) // else when the plugins' probes are there, too
        lifecycle::tell_attached(trace, process);
}

/// A task of the process that was to work for ktrace has ended: true where an exec of another task was the reason.
/// Until that task has taken over the leader's id, the leader is a zombie, as one that has ended by itself is.
bool is_overtaken_by_exec(trace::Trace &trace, Pid pid) {
    constexpr std::uint64_t patience_ns = 1'000'000'000;
    std::uint64_t end = monotonic_ns() + patience_ns;
    while (os::has_ended(Tid{pid.value})) {
        auto tasks = os::read_tasks(pid);
        if (std::all_of(tasks.begin(), tasks.end(), os::has_ended) || monotonic_ns() > end) return false;
        trace.engine.waiter.look_at_others(Tid{pid.value}); // it waits for ends that only ktrace can take
    }
    return true;
}

/// Seizes a process and arms everything in it; on an error detaches, and leaves it as it was. `plan`: as for
/// watch_and_install.
Status take(trace::Trace &trace, Pid pid, std::optional<arming::InstallPlan> plan) {
    Process &process = *trace.engine.processes.at(pid.value);
    auto space = process.space;
    trace::forbid_downloads();
    if (auto seized = tracees::seize_all(trace, process); !seized) return seized;
    if (auto sharing = lifecycle::adopt_sharers(trace, process); !sharing) return sharing;
    auto stopped = tracees::stop_one(trace, process);
    if (!stopped && trace.engine.closing) return {}; // the last event was seen, and an exec has ended its tracing
    if (!stopped) return tl::make_unexpected(stopped.error());
    // An exec that was seen has armed everything, and reports it.
    bool seen_exec = process.space != space;
    Status armed = seen_exec ? Status() : watch_and_install(trace, process, std::move(plan), *stopped);
    tracees::release_one(trace, std::move(*stopped));
    if (armed) armed = tracees::set_all_watches(trace, process);
    // An exec has come in between: its event is there, or comes, and arms everything.
    if (!armed && armed.error().kind == Error::Kind::gone && is_overtaken_by_exec(trace, pid)) return {};
    if (!armed && !os::has_ended(Tid{pid.value}) && tracees::became_another(process)) return {};
    if (armed && !seen_exec) announce_attached(trace, process);
    return armed;
}

/// True where the process, which runs while it is looked at, has changed or is changing: that explains an error.
bool is_changing(trace::Trace &trace, Process &process) {
    return tracees::became_another(process) || !target::modules_complete(process.target) ||
           has_other_modules(trace, process).value_or(false);
}

/// A look at a process that may be in the middle of an exec: for a moment its new memory cannot be read.
Result<std::unique_ptr<Process>> look_patiently(trace::Trace &trace, pid_t pid) {
    while (true) {
        auto looked = tracees::look_at(trace, pid);
        if (looked || looked.error().kind != Error::Kind::gone) return looked;
        if (os::has_ended(Tid{pid}) || os::OwnSignals::are_pending()) return looked;
        ::sched_yield();
    }
}

/// A process to attach to, in which nothing is touched yet.
struct Candidate {
    std::unique_ptr<Process> process;
    std::optional<arming::InstallPlan> plan; // as for watch_and_install
};

/// The first plan of a process. A signal to ktrace ends the search.
Result<arming::InstallPlan> plan_untouched(trace::Trace &trace, Process &process) {
    trace.gives_up = os::OwnSignals::are_pending;
    auto plan = plan_all(trace, process);
    trace.gives_up = nullptr;
    return plan;
}

Result<Candidate> look_and_plan(trace::Trace &trace, pid_t pid) {
    constexpr int attempts = 4; // for a process that calls exec again and again while it is looked at
    for (int i = 1;; i++) {
        auto looked = look_patiently(trace, pid);
        if (!looked) return tl::make_unexpected(looked.error());
        Process &process = **looked;
        if (auto thawed = tracees::refuse_frozen(process.target.pid); !thawed)
            return tl::make_unexpected(thawed.error());
        auto plan = plan_untouched(trace, process);
        if (plan) return Candidate{std::move(*looked), std::move(*plan)};
        if (plan.error().kind == Error::Kind::given_up) return tl::make_unexpected(plan.error());
        const bool was_gone = plan.error().kind == Error::Kind::fault; // and may be there again
        if (!was_gone && !is_changing(trace, process)) return tl::make_unexpected(plan.error());
        // When it is seized it cannot call exec unseen any more.
        if (i == attempts) return Candidate{std::move(*looked), std::nullopt};
        trace.installed.armings.erase(process.space.get());
    }
}

Status take_candidate(trace::Trace &trace, Candidate candidate) {
    const Pid pid = candidate.process->target.pid;
    if (auto known = trace.engine.processes.find(pid.value); known != trace.engine.processes.end()) {
        known->second->silent = false; // it shares the memory of another
        trace.installed.armings.erase(candidate.process->space.get());
        return {};
    }
    trace.engine.processes[pid.value] = std::move(candidate.process);
    return take(trace, pid, std::move(candidate.plan));
}

} // namespace

Status attach_to_all(trace::Trace &trace) {
    std::vector<Candidate> candidates;
    for (pid_t pid : trace.config.pids) {
        auto candidate = look_and_plan(trace, pid);
        if (!candidate) return tl::make_unexpected(candidate.error());
        candidates.push_back(std::move(*candidate));
    }
    const bool is_known = std::all_of(candidates.begin(), candidates.end(), [&](const Candidate &candidate) {
        return candidate.plan && !trace.installed.armings.at(candidate.process->space.get()).waits_for_loader;
    });
    if (is_known)
        if (auto left = arming::check_any_left(trace); !left) return left;
    for (Candidate &candidate : candidates)
        if (auto taken = take_candidate(trace, std::move(candidate)); !taken) return taken;
    return {};
}

Status add_plugins(trace::Trace &trace) {
    if (!trace.plugins || trace.engine.processes.empty()) return {};
    if (trace::anyone_waits_for_loader(trace)) return {}; // they are started when none waits any more
    Process &first = *trace.engine.processes.begin()->second;
    if (auto started = trace.plugins->start(first, nullptr); !started) return started;
    lifecycle::announce_all(trace);
    return {};
}

} // namespace ktrace::session
