// points: where engine/hit calls the machinery that keeps the target from noticing, and nowhere else: as a task is
// made, as a stop comes in, before probes run, behind a step, before a signal is delivered, before the task is resumed.
// Each concern has a folder below (jumps, restart, signals, sigtrap) and a struct in Task.
//
// A stop passes them in this order: at_stop · gather and classify · before_probes · (probes) · after_step ·
// before_signal · BeforeResume.
#pragma once

#include <csignal>
#include <optional>

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// A task has been made, by `maker`, in whose process it is.
void at_birth(Task &child, const Task &maker);

/// A task has stopped: its registers get the program's own values. At the stop of an interrupt, a call that only ktrace
/// has ended is prepared for its restart.
void at_stop(const Engine &engine, Process &process, Task &task, os::Stopped &stopped);

/// The task stands at a trap, a step's end or a watchpoint's stop: its mask and the process's action are put back where
/// that has changed them. `sent`: a SIGTRAP that was sent, in whose place the task has stopped; it is delivered later.
/// May make an injected call in the task.
void before_probes(Engine &engine, Process &process, Task &task, os::Stopped &stopped,
                   const std::optional<siginfo_t> &sent);

/// The task is no longer in the middle of an instruction, and stands where it goes on: its mask is its own again.
/// `signal`: the one that is to be delivered there; 0: none. Returns the one that is: one that was held comes first.
int after_step(Process &process, Task &task, os::Stopped &stopped, int signal);

/// The signal that a program that steps itself gets for a step that has led to `pc`.
siginfo_t end_of_step(VirtAddr pc);

/// The task is at the stop of a trap, and is to get this signal in its place.
void replace_signal(Process &process, Task &task, os::Stopped &stopped, const siginfo_t &info);

/// A signal is about to be delivered to the task, which is at that signal's stop, or at a trap's in whose place it
/// comes: the mask that the handler's frame saves, the action for SIGTRAP, and a call that the signal ends, are as
/// without ktrace.
void before_signal(Engine &engine, Process &process, Task &task, os::Stopped &stopped, int signal);

/// The task is about to be resumed: in the middle of an instruction its signals are blocked, elsewhere its mask is its
/// own; a restarted call leads through the slot of its site. At the end of its scope, when the task has been resumed,
/// the ledger is brought up to date.
class BeforeResume {
  public:
    BeforeResume(Engine &engine, Task &task, os::Stopped &stopped);
    ~BeforeResume();
    BeforeResume(const BeforeResume &) = delete;

  private:
    Engine &engine_;
    Task &task_;
};

} // namespace ktrace::engine
