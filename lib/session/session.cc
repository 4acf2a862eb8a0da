// attach: traces processes that run already. run: starts one. What they share is prepare and conclude.
#include <algorithm>
#include <csignal>
#include <unordered_set>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "os/spawn.h"
#include "rescue/guardian.h"
#include "session/calibrate.h"
#include "session/detach.h"
#include "session/downloads.h"
#include "session/follow.h"
#include "session/handover.h"
#include "session/linger.h"
#include "session/loop.h"
#include "session/names.h"
#include "session/overhead.h"
#include "session/plugins.h"
#include "session/progress.h"
#include "session/rearm.h"
#include "session/refusals.h"
#include "session/registry.h"
#include "session/repair.h"
#include "session/report.h"
#include "session/seize.h"
#include "session/settle.h"
#include "session/start.h"
#include "session/tracing_thread.h"
#include "session/unload.h"
#include "session/waking.h"

namespace ktrace::session {

using trap::Traced;

namespace {

/// What every trace needs before it touches anything.
Status prepare(State &state) {
    auto set = std::make_shared<probe::ProbeSet>();
    set->actions = state.config.actions;
    set->allow_missing = state.config.allow_missing;
    std::vector<probe::Wish> wishes;
    for (const probe::Probe &probe : state.config.probes) wishes.push_back({probe.kind, probe.spec});
    if (auto registered = register_probes(state, set, wishes, nullptr); !registered)
        return tl::make_unexpected(registered.error());
    // Plugins may register return probes at any time; measuring is done while nothing else is traced.
    if (!state.config.plugins.empty() && state.world.corrections.is_empty()) state.world.corrections = calibrate();
    start_overhead(state);
    if (state.config.max_events) state.world.max_events = *state.config.max_events;
    state.symbolizer = make_symbolizer(state);
    if (auto output = open_output(state); !output) return output;
    auto control = Control::open();
    if (control)
        state.control = std::move(*control);
    else
        tell_once(state, "ktrace ctl will not reach this trace: " + control.error().message);
    return {};
}

/// A probe that waited for a module to the end.
void complain_of_unplaced(State &state) {
    for (std::uint32_t number : state.registry.present()) {
        const probe::Registered &registered = state.registry.at(number);
        if (registered.placed || registered.set->allow_missing) continue;
        const probe::Spec &spec = registered.probe.spec;
        state.voice.complain(
            {Error::Kind::not_found,
             spec.text + " was never armed: " +
                 (spec.module.empty() ? "nothing that was loaded has it" : spec.module + " was never loaded"),
             "check its name, or accept it with --allow-missing",
             {},
             -1,
             1});
        state.trouble = 1;
    }
}

/// Tells all that there is to tell; where somebody sleeps on who should not be interrupted, before all are let go.
std::unique_ptr<Leaving> conclude(State &state) {
    state.control.reset(); // nobody is listened to any more
    report_records(state, true);
    stop_plugins(state);
    report_records(state, true);
    auto leaving = std::make_unique<Leaving>(state);
    WakingTime time(state);
    leaving->await(os::Waiter::Block::briefly, [&] { return time.is_left(); });
    if (leaving->is_done()) leaving->end();
    report_summary(state, [&] { leaving->serve_who_is_there(); });
    if (state.trouble == 0) complain_of_unplaced(state);
    return leaving;
}

/// True where a probe that may be in any module has no place in a plan.
bool lacks_some(const State &state, const ArmPlan &plan) {
    std::unordered_set<std::uint32_t> found;
    for (const auto &location : plan.locations) found.insert(state.locations[location->location]->probe);
    for (const WaitingIfunc &ifunc : plan.ifuncs) found.insert(ifunc.probe);
    auto numbers = state.registry.present();
    return std::any_of(numbers.begin(), numbers.end(), [&](std::uint32_t number) {
        return state.registry.at(number).probe.spec.module.empty() && !found.contains(number);
    });
}

/// The plan of all probes. In a process that was started a moment ago nothing is armed before everything is found, or
/// the loader has mapped all of the program's libraries.
Result<ArmPlan> plan_all(State &state, Traced &traced) {
    bool complete = modules_complete(traced);
    auto plan = plan_arming(state, traced, state.registry.present(), complete ? Missing::refuse : Missing::wait);
    bool waits = plan && !complete && (lacks_some(state, *plan) || !state.config.plugins.empty());
    state.armings[traced.ground.get()].waits_for_loader = waits;
    if (!waits) return plan;
    return ArmPlan{};
}

/// All that is known of a process, anew: it called exec after it was looked at and before it was seized.
Status look_anew(State &state, Traced &traced) {
    auto looked = look_at(state, traced.process.pid.value);
    if (!looked) return tl::make_unexpected(looked.error());
    state.armings.erase(traced.ground.get());
    traced.process = std::move((*looked)->process);
    traced.ground = std::move((*looked)->ground);
    return {};
}

/// True where libraries have come or gone since the process was looked at.
Result<bool> has_other_modules(State &state, Traced &traced) {
    const std::size_t modules = traced.process.modules.size();
    auto loaded = refresh_modules(state, traced);
    if (!loaded) return fail(loaded.error());
    return !loaded->empty() || traced.process.modules.size() != modules;
}

/// The plan of a process whose loader is watched. Where that is in the middle of its work still, what it takes out is
/// let alone, and what it has mapped by halves is not looked at: all is armed at the end of that.
Result<ArmPlan> plan_watched(State &state, Traced &traced) {
    const bool unloads = state.armings[traced.ground.get()].unloads = is_unloading(traced);
    auto plan = unloads ? Result<ArmPlan>(ArmPlan{}) : plan_all(state, traced);
    const bool waits = unloads || (!plan && !modules_complete(traced));
    if (!waits) return plan;
    state.armings[traced.ground.get()].waits_for_loader = true;
    return ArmPlan{};
}

/// `plan`: nothing where the process never held still for long enough to make one. `stopped`: a task of the process;
/// nullptr: none may be stopped.
Status arm_all(State &state, Traced &traced, std::optional<ArmPlan> plan, os::Stopped *stopped) {
    if (became_another(traced)) {
        if (auto looked = look_anew(state, traced); !looked) return looked;
        plan.reset();
    }
    // From here on no library comes or goes unseen. Where one has since the process was looked at, that is another
    // plan.
    if (auto watched = watch_loader(state, traced, stopped); !watched) return watched;
    auto others = has_other_modules(state, traced);
    if (!others) return tl::make_unexpected(others.error());
    if (!plan || *others || state.armings[traced.ground.get()].waits_for_loader || is_unloading(traced)) {
        auto anew = plan_watched(state, traced);
        if (!anew) return tl::make_unexpected(anew.error());
        plan = std::move(*anew);
    }
    return carry_out(state, traced, std::move(*plan), stopped);
}

/// Plugins are started when all processes are there.
Status add_plugins(State &state) {
    if (state.config.plugins.empty() || state.world.processes.empty()) return {};
    if (anyone_waits_for_loader(state)) return {}; // they are started when it does no more
    Traced &first = *state.world.processes.begin()->second;
    if (auto started = start_plugins(state, first, nullptr); !started) return started;
    announce_all(state);
    return {};
}

void announce_attached(State &state, const Traced &traced) {
    Arming &arming = state.armings[traced.ground.get()];
    arming.told_to_wait = arming.waits_for_loader;
    const char *waits_for = arming.unloads ? "unloading libraries: its probes wait until that is done"
                                           : "being started: its probes wait until its libraries are loaded";
    if (arming.waits_for_loader) // it is told when all is armed
        tell_once(state, "process " + std::to_string(traced.process.pid.value) + " (" +
                             text::escape(traced.process.comm) + ") is just " + waits_for);
    else if (!state.config.quiet && state.config.plugins.empty()) // else when the plugins' probes are there, too
        state.voice.notice(attached_text(state, traced));
}

/// A task of the process that was to work for us has ended: true where an exec of another one was the reason. Until
/// that has taken over the leader's id, the leader is a zombie, as it is where it has ended by itself.
bool is_overtaken_by_exec(State &state, Pid pid) {
    constexpr std::uint64_t patience_ns = 1'000'000'000;
    std::uint64_t end = monotonic_ns() + patience_ns;
    while (os::has_ended(Tid{pid.value})) {
        auto tasks = os::read_tasks(pid);
        if (std::all_of(tasks.begin(), tasks.end(), os::has_ended) || monotonic_ns() > end) return false;
        state.world.waiter.look_at_others(Tid{pid.value}); // it waits for ends that only we can take
    }
    return true;
}

/// Seizes a process for which another ktrace may still linger.
Status seize_or_take_over(State &state, Traced &traced) {
    constexpr int attempts = 16; // for one that it takes back again and again, as it lets go of others
    for (int i = 1;; i++) {
        const bool obeyed = ask_for(state.world.ledger, traced.process.pid); // who does not is told as its tracer
        auto seized = seize_all(state, traced);
        if (seized || seized.error().kind != Error::Kind::denied || !obeyed || i == attempts) return seized;
        if (lingering_for(traced.process.pid) == 0) return seized;
    }
}

/// Seizes a process and arms everything in it; on an error lets it go as it was. `plan`: as for arm_all.
Status take(State &state, Pid pid, std::optional<ArmPlan> plan) {
    Traced &traced = *state.world.processes.at(pid.value);
    auto ground = traced.ground;
    forbid_downloads();
    if (auto seized = seize_or_take_over(state, traced); !seized) return seized;
    if (auto sharing = adopt_sharers(state, traced); !sharing) return sharing;
    take_over(state, traced);
    auto one = stop_one_gently(state, traced);
    if (!one) return tl::make_unexpected(one.error());
    std::optional<os::Stopped> stopped = std::move(*one);
    // An exec that was seen has seen to everything; it tells when all is armed.
    bool seen_exec = traced.ground != ground;
    Status armed = seen_exec ? Status() : arm_all(state, traced, std::move(plan), stopped ? &*stopped : nullptr);
    if (stopped) release_one(state, std::move(*stopped));
    if (armed) armed = set_all_watches(state, traced);
    // An exec has come in between: its event is there, or comes, and sees to everything.
    if (!armed && armed.error().kind == Error::Kind::gone && is_overtaken_by_exec(state, pid)) return {};
    if (!armed && !os::has_ended(Tid{pid.value}) && became_another(traced)) return {};
    if (armed && !seen_exec) announce_attached(state, traced);
    return armed;
}

/// Is it no wonder that something was not found, or is not what it was a moment ago? What is looked at runs meanwhile.
bool is_changing(State &state, Traced &traced) {
    return became_another(traced) || !modules_complete(traced) || has_other_modules(state, traced).value_or(false);
}

/// A look at a process that may be in the middle of an exec: for a moment nothing of its new memory is there to be
/// read.
Result<std::unique_ptr<Traced>> look_patiently(State &state, pid_t pid) {
    while (true) {
        auto looked = look_at(state, pid);
        if (looked || looked.error().kind != Error::Kind::gone) return looked;
        if (os::has_ended(Tid{pid}) || os::Interrupts::are_pending()) return looked;
        ::sched_yield();
    }
}

/// A process that is to be attached to, of which nothing is touched yet.
struct Candidate {
    std::unique_ptr<Traced> traced;
    std::optional<ArmPlan> plan; // as for arm_all
};

/// The first plan of a process: who interrupts ktrace does not wait for it.
Result<ArmPlan> plan_untouched(State &state, Traced &traced) {
    state.gives_up = os::Interrupts::are_pending;
    auto plan = plan_all(state, traced);
    state.gives_up = nullptr;
    return plan;
}

Result<Candidate> look_and_plan(State &state, pid_t pid) {
    constexpr int attempts = 4; // for one that calls exec again and again while it is being looked at
    for (int i = 1;; i++) {
        auto looked = look_patiently(state, pid);
        if (!looked) return tl::make_unexpected(looked.error());
        Traced &traced = **looked;
        if (auto thawed = refuse_frozen(traced.process.pid); !thawed) return tl::make_unexpected(thawed.error());
        auto plan = plan_untouched(state, traced);
        if (plan) return Candidate{std::move(*looked), std::move(*plan)};
        if (plan.error().kind == Error::Kind::given_up) return tl::make_unexpected(plan.error());
        const bool was_gone = plan.error().kind == Error::Kind::fault; // and may be there again
        if (!was_gone && !is_changing(state, traced)) return tl::make_unexpected(plan.error());
        // Seized, it cannot get ahead of ktrace any more.
        if (i == attempts) return Candidate{std::move(*looked), std::nullopt};
        state.armings.erase(traced.ground.get());
    }
}

Status take_candidate(State &state, Candidate candidate) {
    const Pid pid = candidate.traced->process.pid;
    if (auto known = state.world.processes.find(pid.value); known != state.world.processes.end()) {
        known->second->silent = false; // it shares the memory of another
        state.armings.erase(candidate.traced->ground.get());
        return {};
    }
    state.world.processes[pid.value] = std::move(candidate.traced);
    return take(state, pid, std::move(candidate.plan));
}

/// All are searched before the first is taken: nobody serves the hits of one while another is searched.
Status attach_to_all(State &state) {
    std::vector<Candidate> candidates;
    for (pid_t pid : state.config.pids) {
        auto candidate = look_and_plan(state, pid);
        if (!candidate) return tl::make_unexpected(candidate.error());
        candidates.push_back(std::move(*candidate));
    }
    for (Candidate &candidate : candidates)
        if (auto taken = take_candidate(state, std::move(candidate)); !taken) return taken;
    return {};
}

int status_of(const Error &error) {
    if (error.kind == Error::Kind::given_up) return 0;
    return error.kind == Error::Kind::usage ? 2 : 1;
}

/// Why there is no trace: what the user wanted so is no complaint.
void tell_why_not(const Voice &voice, const Error &error) {
    if (error.kind == Error::Kind::given_up)
        voice.notice(error.message);
    else
        voice.complain(error);
}

/// Nothing was ever written in any of the processes, nor any debug register set, nor can a tripwire's signal be on its
/// way to somebody.
bool is_untouched(const State &state) {
    return std::all_of(state.world.processes.begin(), state.world.processes.end(), [](const auto &entry) {
        const trap::Ground &ground = *entry.second->ground;
        return ground.sites.empty() && ground.watch_generation == 0 && ground.slots.arenas().empty() &&
               !ground.rescue.mapped() && !ground.has_had_tripwires;
    });
}

/// Lets go of all processes, and waits for who sleeps on.
void leave_all(State &state, int status, std::vector<Pid> &rest) {
    Leaving leaving(state);
    WakingTime time(state);
    leaving.await(os::Waiter::Block::briefly, [&] { return time.is_left(); });
    if (leaving.is_done())
        leaving.end();
    else
        rest = linger(state, leaving, status);
}

/// Who is still to be waited for when the tracing thread has ended is added to `rest`.
int attach_here(const Config &config, const Voice &voice, os::Interrupts &interrupts, rescue::Ledger &ledger,
                std::vector<Pid> &rest) {
    auto line = open_live_line(config);
    const Voice beside_line = beside(line.get(), voice);
    State state(config, beside_line);
    state.live_line = line;
    state.world.ledger = &ledger;
    state.world.waiter.set_dispatch_keeper(&ledger);
    state.interrupts = &interrupts;
    permit_downloads();
    Status ready = prepare(state);
    if (ready) ready = attach_to_all(state);
    if (ready) ready = add_plugins(state);
    if (!ready) {
        if (state.writer) { // what a plugin has said to it
            report_records(state, true);
            finish_output(state);
        }
        tell_why_not(voice, ready.error());
        if (ready.error().kind == Error::Kind::given_up) interrupts.take(); // another one ends the waiting for sleepers
        if (!is_untouched(state)) // else the end of this thread lets go, also of who cannot be stopped
            leave_all(state, status_of(ready.error()), rest);
        return status_of(ready.error());
    }
    begin_time(state);
    begin_progress(state);
    trace(state);
    if (line) line->end();
    auto leaving = conclude(state);
    if (!leaving->is_done()) rest = linger(state, *leaving, state.trouble);
    return state.trouble;
}

struct Outcome {
    int status = 125;
    Pid left; // run: the program goes on untraced
    bool failed = false;
};

constexpr int tracing_failed = 125; // exit status of run

/// The program's exec stop, as if it had been dispatched.
trap::Event exec_event(State &state, Pid pid) {
    os::Stop stop;
    stop.tid = Tid{pid.value};
    stop.kind = os::Stop::Kind::exec;
    trap::Event event;
    event.kind = trap::Event::Kind::exec;
    event.pid = pid;
    event.tid = stop.tid;
    event.stopped = std::make_unique<os::Stopped>(state.world.waiter, stop);
    return event;
}

Outcome run_here(const Config &config, const Voice &voice, os::Interrupts &interrupts, rescue::Ledger &ledger,
                 os::Spawn &program) {
    State state(config, voice);
    state.world.ledger = &ledger;
    state.world.waiter.set_dispatch_keeper(&ledger);
    state.interrupts = &interrupts;
    permit_downloads();
    if (auto ready = prepare(state); !ready) {
        voice.complain(ready.error());
        return {ready.error().kind == Error::Kind::usage ? 2 : tracing_failed, {}};
    }
    auto pid = program.start_seized(state.world.waiter);
    if (!pid) {
        voice.complain(pid.error());
        if (pid.error().kind == Error::Kind::not_found) return {127, {}};
        return {pid.error().kind == Error::Kind::denied ? 126 : tracing_failed, {}};
    }
    state.program = *pid;
    ledger.set_program(*pid);
    state.world.waiter.watch(Tid{pid->value});
    auto &traced = state.world.processes[pid->value];
    traced = std::make_unique<Traced>();
    traced->process.pid = *pid;
    traced->ground = std::make_shared<trap::Ground>();
    settle(state, exec_event(state, *pid));
    if (state.trouble == 0) trace(state);
    auto leaving = conclude(state);
    // The program is waited for anyway.
    if (!leaving->is_done())
        wait_for_sleepers(state, *leaving, [&] {
            if (state.program_status < 0) pass_on(state.program, interrupts.take());
            return !interrupts.is_abandoned();
        });
    bool failed = state.trouble != 0;
    if (state.program_status < 0) return {tracing_failed, *pid, failed};
    return {failed ? tracing_failed : state.program_status, {}};
}

/// The program runs on untraced: its exit status, and the signals that are meant for it.
int wait_for_program(Pid pid, os::Interrupts &interrupts) {
    interrupts.stop_timer();
    os::Interrupts::unblock();
    int status = 0;
    do { // one may have come while the trace ended
        pass_on(pid, interrupts.take());
        if (interrupts.is_abandoned()) return tracing_failed;
    } while (::waitpid(pid.value, &status, 0) < 0 && errno == EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

void tell_once(State &state, const std::string &text) {
    if (!state.told.insert(text).second || state.config.quiet) return;
    state.voice.notice(text);
}

int attach(const Config &config, const Voice &voice) {
    auto trace = [&](rescue::Ledger &ledger) {
        os::Interrupts interrupts;
        int status = 1;
        std::vector<Pid> rest;
        Status started;
        for (std::size_t i = 0; started && i < config.pids.size(); i++)
            started = in_tracing_thread([&] { take_out_what_is_left(Pid{config.pids[i]}, voice); });
        if (started)
            started = in_tracing_thread([&] { status = attach_here(config, voice, interrupts, ledger, rest); });
        if (!started) voice.complain(started.error());
        while (!rest.empty()) in_some_tracing_thread([&] { rest = linger_on(rest, voice, interrupts); });
        return status;
    };
    auto mend = [&](const rescue::Ledger &ledger, int signal) {
        if (!config.quiet) output::LiveLine::erase_what_is_left(STDERR_FILENO);
        in_some_tracing_thread([&] { mend_after(ledger, signal, voice); });
        return 1;
    };
    return rescue::guarded(rescue::Terminal::left, trace, mend);
}

int run(const Config &config, const Voice &voice) {
    auto trace = [&](rescue::Ledger &ledger) {
        os::Interrupts interrupts;
        auto program = os::Spawn::fork(interrupts, Pid{::getppid()}, config.program);
        if (!program) {
            voice.complain(program.error());
            return tracing_failed;
        }
        Outcome outcome;
        auto started = in_tracing_thread([&] { outcome = run_here(config, voice, interrupts, ledger, *program); });
        if (!started) voice.complain(started.error());
        if (outcome.left.value == 0 || interrupts.is_abandoned()) return outcome.status;
        int status = wait_for_program(outcome.left, interrupts);
        return outcome.failed ? tracing_failed : status;
    };
    auto mend = [&](const rescue::Ledger &ledger, int signal) {
        const bool mended = in_tracing_thread([&] { mend_after(ledger, signal, voice); }).has_value();
        if (!mended) mend_after(ledger, signal, voice); // only the end of this thread lets go of the sleepers
        if (mended && ledger.program().value != 0) os::wait_for_end(ledger.program());
        return tracing_failed;
    };
    return rescue::guarded(rescue::Terminal::kept, trace, mend);
}

} // namespace ktrace::session
