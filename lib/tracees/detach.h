// detach: leaves a process as it was: all bytes back and checked, every task out of the slots, our pages unmapped,
// signals kept, nobody disturbed who sleeps.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "os/tracee/wait.h"
#include "tracees/stop.h"

namespace ktrace::tracees {

/// Takes leave of all processes. What could not be put back is complained of. Tasks that sleep in the kernel stay
/// traced (by nothing but name) until the calling thread ends, which lets them go without waking them.
class Leaving {
  public:
    /// All traps come out, and everybody is let go where that can be without interrupting a sleeper whose time-out
    /// would begin anew, or whose call would be cut short. `state` outlives this.
    explicit Leaving(trace::Trace &trace);
    Leaving(const Leaving &) = delete;

    /// Lets go of the others as these wake up, for as long as `go_on`, which is asked after every stop, signal of our
    /// own and (Block::briefly) millisecond. Calls in flight have ended as unreturned.
    void await(os::Waiter::Block block, const std::function<bool()> &go_on);
    /// The same for those who have woken up; does not wait.
    void serve_who_is_there();

    /// Lets go of who can be let go now, and sees anew to it that the others stop where they wake up.
    void look_again();

    /// Everybody has been let go.
    bool is_done() const { return grounds_.empty(); }
    /// This one cannot be left before a control group lets it run.
    bool is_frozen(const SpacePointer &space) const { return frozen_.contains(space); }
    /// The address spaces that have not, each with one of its processes.
    const std::map<SpacePointer, Pid> &grounds() const { return grounds_; }
    /// Processes that have not.
    std::vector<Pid> awaited() const;

    /// Who sleeps on is interrupted.
    void end();

  private:
    bool leave(const SpacePointer &space, Pid pid, HeldTasks &held);
    void let_go(const SpacePointer &space, Pid pid, HeldTasks &held);
    void let_go_late(engine::Process &process, Tid tid);
    void serve(const os::Stop &stop);
    void await_thaw();

    trace::Trace &trace_;
    std::map<SpacePointer, Pid> grounds_; // that are not left yet
    std::set<SpacePointer> frozen_;       // of these, when they were looked at last
};

/// How long sleepers are waited for before they are interrupted; until_they_wake_up: WakingTime.
enum class Patience : std::uint8_t { none, until_they_wake_up };

/// Detaches from all processes.
void detach_all(trace::Trace &trace, Patience patience);

} // namespace ktrace::tracees
