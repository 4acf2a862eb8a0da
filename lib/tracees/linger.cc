#include "tracees/linger.h"

#include <csignal>

#include <unistd.h>

#include "lifecycle/fork.h"
#include "os/self/descriptors.h"
#include "os/self/own_signals.h"
#include "os/self/process_name.h"
#include "recovery/guardian.h"
#include "tracees/handover.h"
#include "tracees/seize.h"

namespace ktrace::tracees {

namespace {

/// Nobody who waits for the end of a file, a pipe or a file system waits for this process.
void be_in_background(const Leaving &leaving) {
    std::string pids;
    for (Pid pid : leaving.awaited()) pids += " " + std::to_string(pid.value);
    os::set_title(recovery::lingering_process_name, recovery::lingering_process_name + pids);
    os::drop_inherited_descriptors();
    static_cast<void>(::chdir("/"));
}

void announce(trace::Trace &trace, const Leaving &leaving) {
    for (Pid pid : leaving.awaited()) {
        const std::string id = std::to_string(pid.value);
        const bool frozen = leaving.is_frozen(trace.engine.processes.at(pid.value)->space);
        trace::tell_once(
            trace, "process " + id + (frozen ? " is frozen: when it is thawed, " : " sleeps on: when it wakes up, ") +
                       recovery::lingering_process_name + " (" + std::to_string(::getpid()) + ") takes out the rest" +
                       (frozen ? "" : "; ktrace repair -p " + id + " has it done at once"));
    }
}

} // namespace

namespace {

/// Processes that were not asked for and have to be waited for anew.
std::vector<Pid> rest_of(const trace::Trace &trace, const Leaving &leaving, Pid asked_for) {
    const auto process = trace.engine.processes.find(asked_for.value);
    std::vector<Pid> rest = leaving.awaited();
    std::erase_if(rest, [&](Pid pid) {
        return process != trace.engine.processes.end() &&
               trace.engine.processes.at(pid.value)->space == process->second->space;
    });
    return rest;
}

/// Who has just woken up is let go first. False: all have been let go, or cannot be handed over.
bool hand_over_at_last(trace::Trace &trace, Leaving &leaving) {
    constexpr int attempts = 64; // each gives those that are awake some time to fall asleep
    for (int i = 0; i < attempts && !leaving.is_done(); i++) {
        if (hand_over(trace, leaving)) return true;
        leaving.look_again();
        leaving.serve_who_is_there();
    }
    return false;
}

/// Until all have been let go, or one was handed over.
std::vector<Pid> wait_for_them(trace::Trace &trace, Leaving &leaving, bool may_hand_over) {
    while (true) {
        leaving.await(os::Waiter::Block::yes, [] { return !os::OwnSignals::are_pending(); });
        const int signal = trace.interrupts->take();
        const Pid asked_for{os::OwnSignals::handed_over()};
        if (signal != os::OwnSignals::hand_over || leaving.is_done() || !may_hand_over) break;
        if (!trace.engine.processes.contains(asked_for.value)) continue; // it has passed on already
        if (!hand_over_at_last(trace, leaving)) break;
        return rest_of(trace, leaving, asked_for);
    }
    leaving.end();
    return {};
}

} // namespace

std::vector<Pid> linger(trace::Trace &trace, Leaving &leaving, int status) {
    announce(trace, leaving);
    static_cast<void>(trace.interrupts->take()); // it has ended what was before; from here on it is meant for this
    std::signal(os::OwnSignals::abandoned, SIG_IGN);
    trace.sink.reset();
    trace.writer.reset(); // whoever reads the file waits for its end
    os::OwnSignals::accept_hand_over();
    const bool may_hand_over = put_to_rest(trace, leaving); // from here on its death harms nobody
    be_in_background(leaving);
    if (trace.engine.ledger && !trace.interrupts->is_abandoned())
        recovery::dismiss_guardian(*trace.engine.ledger, status);
    trace.interrupts->stop_timer();
    return wait_for_them(trace, leaving, may_hand_over);
}

std::vector<Pid> linger_on(const std::vector<Pid> &pids, const trace::Voice &voice, os::OwnSignals &interrupts) {
    const trace::Config config;
    trace::Trace trace(config, voice);
    trace.interrupts = &interrupts;
    for (Pid pid : pids) {
        if (trace.engine.processes.contains(pid.value)) continue; // it shares the memory of another one
        auto looked = look_at(trace, pid.value);
        if (!looked) continue; // it has ended, or somebody else has come
        engine::Process &process = *(trace.engine.processes[pid.value] = std::move(*looked));
        if (!seize_all(trace, process) || !lifecycle::adopt_sharers(trace, process)) continue;
        find_room(process);
    }
    Leaving leaving(trace);
    const bool may_hand_over = put_to_rest(trace, leaving);
    be_in_background(leaving);
    return wait_for_them(trace, leaving, may_hand_over);
}

void wait_for_sleepers(trace::Trace &trace, Leaving &leaving, const std::function<bool()> &go_on) {
    trace.interrupts->stop_timer(); // of --duration: it would end each wait, again and again
    leaving.await(os::Waiter::Block::yes, go_on);
    leaving.end();
}

bool end_lingering(Pid pid) {
    const pid_t lingering = lingering_for(pid);
    return lingering != 0 && end_waiting(lingering, pid, SIGTERM);
}

} // namespace ktrace::tracees
