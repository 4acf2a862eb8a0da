// spawn: starts a program that is seized before its first instruction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "os/self/own_signals.h"
#include "os/tracee/wait.h"

namespace ktrace::os {

/// Why the kernel gives us no new `what` (process, thread), by errno: mostly a limit of the user's or of a control
/// group's.
Error no_new_task(std::string_view what, int error);

/// A child that waits to become a program.
class Spawn {
  public:
    /// Forks it, to become `program` (looked up in PATH, as execvp does), with the signals as `interrupts` found them;
    /// `guardian` may trace it, too. The calling thread is the program's parent to the end, whose death it may have
    /// asked a signal for (PR_SET_PDEATHSIG, prctl(2)): call it in the one that lives longest, before there is any
    /// other, since in the child there is only the one that forked. Errors: system (no process, or no pipe, to be had).
    static Result<Spawn> fork(const OwnSignals &interrupts, Pid guardian, std::vector<std::string> program);

    /// One that was not started ends; it does where this process ends, too.
    ~Spawn();
    Spawn(Spawn &&other) noexcept;

    /// Seizes it, and waits for its exec; once. The calling thread traces it. Returns its id; its task is in the exec
    /// event's stop (consumed; see Waiter). Errors: not_found (no such program), denied (cannot be run: exec's reason),
    /// system (ktrace cannot trace it).
    Result<Pid> start_seized(Waiter &waiter);

  private:
    Spawn(std::vector<std::string> program, pid_t child, Fd go, Fd report);

    std::vector<std::string> program_;
    pid_t child_ = 0; // 0: started, or moved from
    Fd go_, report_;
};

} // namespace ktrace::os
