#include "session/linger.h"

#include <csignal>

#include <unistd.h>

#include "os/descriptors.h"
#include "os/interrupts.h"
#include "os/title.h"
#include "rescue/guardian.h"
#include "session/follow.h"
#include "session/handover.h"
#include "session/seize.h"

namespace ktrace::session {

namespace {

/// Nobody who waits for the end of a file, a pipe or a file system waits for this process.
void be_in_background(const Leaving &leaving) {
    std::string pids;
    for (Pid pid : leaving.awaited()) pids += " " + std::to_string(pid.value);
    os::set_title(rescue::lingering_process_name, rescue::lingering_process_name + pids);
    os::drop_inherited_descriptors();
    static_cast<void>(::chdir("/"));
}

void announce(State &state, const Leaving &leaving) {
    for (Pid pid : leaving.awaited()) {
        const std::string id = std::to_string(pid.value);
        const bool frozen = leaving.is_frozen(state.world.processes.at(pid.value)->ground);
        tell_once(state,
                  "process " + id + (frozen ? " is frozen: when it is thawed, " : " sleeps on: when it wakes up, ") +
                      rescue::lingering_process_name + " (" + std::to_string(::getpid()) + ") takes out the rest" +
                      (frozen ? "" : "; ktrace repair -p " + id + " has it done at once"));
    }
}

} // namespace

namespace {

/// Processes that were not asked for and have to be waited for anew.
std::vector<Pid> rest_of(const State &state, const Leaving &leaving, Pid asked_for) {
    const auto process = state.world.processes.find(asked_for.value);
    std::vector<Pid> rest = leaving.awaited();
    std::erase_if(rest, [&](Pid pid) {
        return process != state.world.processes.end() &&
               state.world.processes.at(pid.value)->ground == process->second->ground;
    });
    return rest;
}

/// Who has just woken up is let go first. False: all have been let go, or cannot be handed over.
bool hand_over_at_last(State &state, Leaving &leaving) {
    constexpr int attempts = 64; // each gives those that are awake some time to fall asleep
    for (int i = 0; i < attempts && !leaving.is_done(); i++) {
        if (hand_over(state, leaving)) return true;
        leaving.look_again();
        leaving.serve_who_is_there();
    }
    return false;
}

/// Until all have been let go, or one was handed over.
std::vector<Pid> wait_for_them(State &state, Leaving &leaving, bool may_hand_over) {
    while (true) {
        leaving.await(os::Waiter::Block::yes, [] { return !os::Interrupts::are_pending(); });
        const int signal = state.interrupts->take();
        const Pid asked_for{os::Interrupts::handed_over()};
        if (signal != os::Interrupts::hand_over || leaving.is_done() || !may_hand_over) break;
        if (!state.world.processes.contains(asked_for.value)) continue; // it has passed on already
        if (!hand_over_at_last(state, leaving)) break;
        return rest_of(state, leaving, asked_for);
    }
    leaving.end();
    return {};
}

} // namespace

std::vector<Pid> linger(State &state, Leaving &leaving, int status) {
    announce(state, leaving);
    static_cast<void>(state.interrupts->take()); // it has ended what was before; from here on it is meant for this
    std::signal(os::Interrupts::abandoned, SIG_IGN);
    state.sink.reset();
    state.writer.reset(); // whoever reads the file waits for its end
    os::Interrupts::accept_hand_over();
    const bool may_hand_over = put_to_rest(state, leaving); // from here on its death harms nobody
    be_in_background(leaving);
    if (state.world.ledger && !state.interrupts->is_abandoned()) rescue::dismiss_guardian(*state.world.ledger, status);
    state.interrupts->stop_timer();
    return wait_for_them(state, leaving, may_hand_over);
}

std::vector<Pid> linger_on(const std::vector<Pid> &pids, const Voice &voice, os::Interrupts &interrupts) {
    const Config config;
    State state(config, voice);
    state.interrupts = &interrupts;
    for (Pid pid : pids) {
        if (state.world.processes.contains(pid.value)) continue; // it shares the memory of another one
        auto looked = look_at(state, pid.value);
        if (!looked) continue; // it has ended, or somebody else has come
        trap::Traced &traced = *(state.world.processes[pid.value] = std::move(*looked));
        if (!seize_all(state, traced) || !adopt_sharers(state, traced)) continue;
        find_room(traced);
    }
    Leaving leaving(state);
    const bool may_hand_over = put_to_rest(state, leaving);
    be_in_background(leaving);
    return wait_for_them(state, leaving, may_hand_over);
}

void wait_for_sleepers(State &state, Leaving &leaving, const std::function<bool()> &go_on) {
    state.interrupts->stop_timer(); // of --duration: it would end each wait, again and again
    leaving.await(os::Waiter::Block::yes, go_on);
    leaving.end();
}

bool end_lingering(Pid pid) {
    const pid_t lingering = lingering_for(pid);
    return lingering != 0 && end_waiting(lingering, pid, SIGTERM);
}

} // namespace ktrace::session
