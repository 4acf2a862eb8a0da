#include "session/linger.h"

#include <csignal>
#include <ctime>

#include <unistd.h>

#include "base/clock.h"
#include "os/descriptors.h"
#include "os/interrupts.h"
#include "os/title.h"
#include "rescue/guardian.h"

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

/// The thread of another ktrace that lingers for this process; 0: there is none.
pid_t lingering_for(Pid pid) {
    auto status = os::read_status(pid.value);
    if (!status || status->tracer == 0) return 0;
    auto tracer = os::read_status(status->tracer);
    return tracer && tracer->name == rescue::lingering_process_name ? status->tracer : 0;
}

void announce(State &state, const Leaving &leaving) {
    for (Pid pid : leaving.awaited())
        tell_once(state, "process " + std::to_string(pid.value) + " sleeps on: when it wakes up, " +
                             rescue::lingering_process_name + " (" + std::to_string(::getpid()) +
                             ") takes out the rest; ktrace repair -p " + std::to_string(pid.value) +
                             " has it done at once");
}

} // namespace

void linger(State &state, Leaving &leaving, int status) {
    announce(state, leaving);
    static_cast<void>(state.interrupts->take()); // it has ended what was before; from here on it is meant for this
    std::signal(os::Interrupts::abandoned, SIG_IGN);
    state.sink.reset();
    state.writer.reset(); // whoever reads the file waits for its end
    be_in_background(leaving);
    if (state.world.ledger && !state.interrupts->is_abandoned()) rescue::dismiss_guardian(*state.world.ledger, status);
    wait_for_sleepers(state, leaving, [] { return !os::Interrupts::are_pending(); });
}

void wait_for_sleepers(State &state, Leaving &leaving, const std::function<bool()> &go_on) {
    state.interrupts->stop_timer(); // of --duration: it would end each wait, again and again
    leaving.await(os::Waiter::Block::yes, go_on);
    leaving.end();
}

bool end_lingering(Pid pid) {
    const pid_t lingering = lingering_for(pid);
    if (lingering == 0 || ::kill(lingering, SIGTERM) != 0) return false;
    constexpr std::uint64_t patience_ns = 5'000'000'000; // a stop is all that it waits for
    constexpr timespec moment{0, 1'000'000};
    const std::uint64_t end = monotonic_ns() + patience_ns;
    while (lingering_for(pid) == lingering) {
        if (monotonic_ns() > end) return false;
        ::nanosleep(&moment, nullptr);
    }
    return true;
}

} // namespace ktrace::session
