// attach: traces processes that run already. run: starts one. Both begin with prepare and end with conclude.
#include <algorithm>
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "arming/registry.h"
#include "ctl/server.h"
#include "engine/hit/dispatch.h"
#include "lifecycle/events.h"
#include "lifecycle/exec_and_loader.h"
#include "os/tracee/spawn.h"
#include "recovery/guardian.h"
#include "report/records.h"
#include "report/status_line.h"
#include "report/symbolizer.h"
#include "session/attach.h"
#include "session/loop.h"
#include "session/overhead_limit.h"
#include "session/plugins.h"
#include "session/repair.h"
#include "session/verdicts.h"
#include "trace/calibrate.h"
#include "trace/downloads.h"
#include "trace/run_until.h"
#include "trace/tracing_thread.h"
#include "tracees/detach.h"
#include "upgrade/counts.h"

namespace ktrace::session {

using engine::Process;

namespace {

/// The preparations of a trace, before it touches anything.
Status prepare(trace::Trace &trace, Verdicts &verdicts) {
    auto set = std::make_shared<probe::ProbeSet>();
    set->actions = trace.config.actions;
    set->allow_missing = trace.config.allow_missing;
    if (trace.config.interval_ns) trace.registry.keep_recent();
    if (auto registered = arming::register_probes(trace, set, trace.config.probes, nullptr); !registered)
        return tl::make_unexpected(registered.error());
    if (auto begun = verdicts.begin(trace); !begun) return begun;
    // Plugins may register return probes at any time; the calibration is made while nothing else is traced.
    if (!trace.config.plugins.empty() && trace.engine.corrections.is_empty())
        trace.engine.corrections = trace::calibrate();
    start_overhead(trace);
    if (trace.config.max_events) trace.engine.max_events = *trace.config.max_events;
    trace.plugins = make_plugins(trace);
    trace.output.symbolizer = report::make_symbolizer(trace);
    trace.output.before_modules_change = [&trace](const Process &process) {
        report::part_with_modules(trace, process);
    };
    if (auto output = report::open_output(trace); !output) return output;
    auto control = ctl::Control::open();
    if (control)
        trace.orders.control = std::move(*control);
    else
        trace::tell_once(trace, "ktrace ctl will not reach this trace: " + control.error().message);
    return {};
}

/// Complains of probes whose module was never loaded.
void complain_of_unplaced(trace::Trace &trace) {
    for (std::uint32_t number : trace.registry.present()) {
        const probe::ProbeEntry &registered = trace.registry.at(number);
        const bool is_beside = registered.set->hidden && !registered.set->encloses; // another one of the same SPEC
        if (registered.placed || registered.set->allow_missing || is_beside) continue;
        const probe::Spec &spec = registered.probe.spec;
        trace.voice.complain(
            {Error::Kind::not_found,
             spec.text + " was never armed: " +
                 (spec.module.empty() ? "nothing that was loaded has it" : spec.module + " was never loaded"),
             "check its name, or accept it with --allow-missing",
             {},
             -1,
             1});
        trace.trouble = 1;
    }
}

/// Prints the remaining records and the summary, and detaches from all processes. False: some expectation does not
/// hold.
bool conclude(trace::Trace &trace, Verdicts &verdicts) {
    trace.orders.control.reset(); // no more orders
    report::report_records(trace, true);
    if (trace.plugins) trace.plugins->stop();
    report::report_records(trace, true);
    tracees::detach_all(trace);
    upgrade::take_counts(trace);
    verdicts.judge(trace);
    report::report_summary(trace, [&] { trace::serve_each(trace); });
    const bool hold = verdicts.conclude(trace);
    if (trace.trouble == 0) complain_of_unplaced(trace);
    return hold;
}

int status_of(const Error &error) {
    if (error.kind == Error::Kind::given_up) return 0;
    return error.kind == Error::Kind::usage ? 2 : 1;
}

constexpr int expectation_broken = 3; // exit status

/// Prints the reason why there is no trace: a notice where the user has ended it, else an error.
void tell_why_not(const trace::Voice &voice, const Error &error) {
    if (error.kind == Error::Kind::given_up)
        voice.notice(error.message);
    else
        voice.complain(error);
}

/// Nothing was ever written in any of the processes, nor any debug register set.
bool is_untouched(const trace::Trace &trace) {
    return std::all_of(trace.engine.processes.begin(), trace.engine.processes.end(), [](const auto &entry) {
        const engine::AddressSpaceState &space = *entry.second->space;
        return space.sites.empty() && space.watch_generation == 0 && space.slots.arenas().empty() &&
               !space.recovery.mapped();
    });
}

/// A trace, with its own voice.
struct Tracing {
    Tracing(const trace::Config &config, trace::Voice own)
        : voice(std::move(own)), verdicts(config), trace(config, voice, lifecycle::event_handlers) {}
    const trace::Voice voice;
    Verdicts verdicts; // outlives the records of its probes
    trace::Trace trace;
};

/// `kept`: the trace, which is destroyed when the calling thread has ended. That takes time, and tasks that are
/// detached by the end of the thread would wait for it.
int attach_here(const trace::Config &config, const trace::Voice &voice, os::OwnSignals &interrupts,
                recovery::Ledger &ledger, std::unique_ptr<Tracing> &kept) {
    auto line = report::open_live_line(config);
    kept = std::make_unique<Tracing>(config, report::beside(line.get(), voice));
    trace::Trace &trace = kept->trace;
    trace.output.live_line = line;
    trace.engine.ledger = &ledger;
    trace.engine.waiter.set_dispatch_keeper(&ledger);
    trace.interrupts = &interrupts;
    trace::permit_downloads();
    Status ready = prepare(trace, kept->verdicts);
    if (ready) ready = attach_to_all(trace);
    if (ready) ready = add_plugins(trace);
    if (!ready) {
        if (trace.output.writer) { // lines of plugins
            report::report_records(trace, true);
            report::finish_output(trace);
        }
        tell_why_not(voice, ready.error());
        kept->verdicts.give_up(voice);
        if (!is_untouched(trace)) tracees::detach_all(trace); // else the end of this thread detaches from all
        tracees::serve_for_the_last_time(trace);
        return status_of(ready.error());
    }
    lifecycle::begin_time(trace);
    report::begin_progress(trace);
    run_loop(trace);
    if (line) line->end();
    const bool hold = conclude(trace, kept->verdicts);
    tracees::serve_for_the_last_time(trace);
    return trace.trouble != 0 || hold ? trace.trouble : expectation_broken;
}

struct Outcome {
    int status = 125;
    Pid left; // run: the program goes on untraced
    bool failed = false;
    bool hold = true; // the expectations
};

constexpr int tracing_failed = 125; // exit status of run

/// The exit status of run, from the program's.
int status_of(const Outcome &outcome, int program) {
    if (outcome.failed) return tracing_failed;
    return program == 0 && !outcome.hold ? expectation_broken : program;
}

/// The event of the program's exec stop, as dispatch would return it.
engine::Event exec_event(trace::Trace &trace, Pid pid) {
    os::Stop stop;
    stop.tid = Tid{pid.value};
    stop.kind = os::Stop::Kind::exec;
    engine::Event event;
    event.kind = engine::Event::Kind::exec;
    event.pid = pid;
    event.tid = stop.tid;
    event.stopped = std::make_unique<os::Stopped>(trace.engine.waiter, stop);
    return event;
}

Outcome run_here(const trace::Config &config, const trace::Voice &voice, os::OwnSignals &interrupts,
                 recovery::Ledger &ledger, os::Spawn &program, std::unique_ptr<Tracing> &kept) {
    kept = std::make_unique<Tracing>(config, voice);
    trace::Trace &trace = kept->trace;
    trace.engine.ledger = &ledger;
    trace.engine.waiter.set_dispatch_keeper(&ledger);
    trace.interrupts = &interrupts;
    trace::permit_downloads();
    Verdicts &verdicts = kept->verdicts;
    if (auto ready = prepare(trace, verdicts); !ready) {
        voice.complain(ready.error());
        verdicts.give_up(voice);
        return {ready.error().kind == Error::Kind::usage ? 2 : tracing_failed, {}};
    }
    auto pid = program.start_seized(trace.engine.waiter);
    if (!pid) {
        Error why = pid.error();
        if (why.kind == Error::Kind::not_found && !config.program_hint.empty()) why.hint = config.program_hint;
        voice.complain(why);
        verdicts.give_up(voice);
        if (pid.error().kind == Error::Kind::not_found) return {127, {}};
        return {pid.error().kind == Error::Kind::denied ? 126 : tracing_failed, {}};
    }
    trace.program.pid = *pid;
    ledger.set_program(*pid);
    trace.engine.waiter.watch(Tid{pid->value});
    auto &process = trace.engine.processes[pid->value];
    process = std::make_unique<Process>();
    process->target.pid = *pid;
    process->space = std::make_shared<engine::AddressSpaceState>();
    lifecycle::handle_event(trace, exec_event(trace, *pid));
    if (trace.trouble == 0) run_loop(trace);
    const bool hold = conclude(trace, verdicts);
    tracees::serve_for_the_last_time(trace);
    Outcome outcome{tracing_failed, {}, trace.trouble != 0, hold};
    if (trace.program.status < 0)
        outcome.left = *pid;
    else
        outcome.status = status_of(outcome, trace.program.status);
    return outcome;
}

/// Waits for the program, which runs on untraced; signals are passed on. Returns its exit status.
int wait_for_program(Pid pid, os::OwnSignals &interrupts) {
    interrupts.stop_timer();
    os::OwnSignals::unblock();
    int status = 0;
    do { // one may have come while the trace ended
        pass_on(pid, interrupts.take());
        if (interrupts.is_abandoned()) return tracing_failed;
    } while (::waitpid(pid.value, &status, 0) < 0 && errno == EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

int attach(const trace::Config &config, const trace::Voice &voice) {
    auto trace = [&](recovery::Ledger &ledger) {
        os::OwnSignals interrupts;
        std::unique_ptr<Tracing> kept;
        int status = 1;
        Status started;
        for (std::size_t i = 0; started && i < config.pids.size(); i++)
            started = trace::in_tracing_thread([&] { take_out_what_is_left(Pid{config.pids[i]}, voice); });
        if (started)
            started = trace::in_tracing_thread([&] { status = attach_here(config, voice, interrupts, ledger, kept); });
        if (!started) voice.complain(started.error());
        return status;
    };
    auto mend = [&](const recovery::Ledger &ledger, int signal) {
        if (!config.quiet) output::LiveLine::erase_what_is_left(STDERR_FILENO);
        trace::in_some_tracing_thread([&] { mend_after(ledger, signal, voice); });
        Verdicts(config).give_up(voice);
        return 1;
    };
    return recovery::guarded(recovery::Terminal::left, trace, mend);
}

int run(const trace::Config &config, const trace::Voice &voice) {
    auto trace = [&](recovery::Ledger &ledger) {
        os::OwnSignals interrupts;
        auto program = os::Spawn::fork(interrupts, Pid{::getppid()}, config.program);
        if (!program) {
            voice.complain(program.error());
            return tracing_failed;
        }
        std::unique_ptr<Tracing> kept;
        Outcome outcome;
        auto started =
            trace::in_tracing_thread([&] { outcome = run_here(config, voice, interrupts, ledger, *program, kept); });
        kept.reset();
        if (!started) voice.complain(started.error());
        if (outcome.left.value == 0 || interrupts.is_abandoned()) return outcome.status;
        return status_of(outcome, wait_for_program(outcome.left, interrupts));
    };
    auto mend = [&](const recovery::Ledger &ledger, int signal) {
        const bool mended = trace::in_tracing_thread([&] { mend_after(ledger, signal, voice); }).has_value();
        if (!mended) mend_after(ledger, signal, voice); // the end of this thread detaches from the tasks that sleep
        Verdicts(config).give_up(voice);
        if (mended && ledger.program().value != 0) os::wait_for_end(ledger.program());
        return tracing_failed;
    };
    return recovery::guarded(recovery::Terminal::kept, trace, mend);
}

} // namespace ktrace::session
