// attach: traces processes that run already. run: starts one. What they share is prepare and conclude.
#include <algorithm>
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "os/spawn.h"
#include "rescue/guardian.h"
#include "session/attach.h"
#include "session/calibrate.h"
#include "session/detach.h"
#include "session/downloads.h"
#include "session/linger.h"
#include "session/loop.h"
#include "session/names.h"
#include "session/overhead.h"
#include "session/plugins.h"
#include "session/progress.h"
#include "session/registry.h"
#include "session/repair.h"
#include "session/report.h"
#include "session/settle.h"
#include "session/start.h"
#include "session/tracing_thread.h"
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
