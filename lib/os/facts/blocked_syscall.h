// blocked_syscall: whether a task sleeps in a system call, and how an interrupt ends that call.
//
// Source: 37 calls that sleep were tried, on Linux 6.18. Interrupted, most show -512 to -516 (signal(7): the kernel
// restarts them, where no handler runs), or a count of the bytes done. The others show -EINTR: they are restarted by
// hand (engine/transparent/restart).
#pragma once

#include <optional>

#include "arch/host.h"
#include "os/proc/procfs.h"

namespace ktrace::os {

/// In the order in which tasks are asked to stop.
enum class Interrupted : std::uint8_t {
    runs,      // it does not sleep in a system call
    restarted, // the kernel restarts the call
    by_hand,   // it shows -EINTR: restarted by hand, its time-out begins anew
    cut_short, // it returns with the part that is done; or another process answers it, which notices the interrupt or
               // is asked twice (a file system, fuse(4); a supervisor, seccomp_unotify(2)); or it waits for a page that
               // another thread fills in (userfaultfd(2)), and uses up a processor until then
};

/// `has_time_limit`: the call is on a socket that limits how long such calls wait (SO_RCVTIMEO, SO_SNDTIMEO). Pure.
Interrupted interrupted(const TaskPlace &place, bool has_time_limit);

/// The same of a task, as it is now. One that has ended `runs`.
Interrupted interrupted(Pid pid, Tid tid);

/// True for a call that shows -EINTR and has done nothing, so that it can be restarted. `on_socket`: its file is a
/// socket. Pure.
bool may_be_made_again(const TaskPlace &place, bool on_socket);

/// Of a task at the stop of an interrupt: the call that it was in. Nothing: it was in none.
std::optional<TaskPlace> interrupted_call(Pid pid, Tid tid, const arch::Host::Registers &registers);

/// Of a task that stands at a stop with -EINTR: its call, if that is one that may be made again.
std::optional<TaskPlace> call_to_make_again(Pid pid, Tid tid, const arch::Host::Registers &registers);

/// Asleep where no signal wakes it (a parent in vfork): its interrupt is seen when that has ended, before it runs on.
bool sleeps_deeply(Tid tid);

/// The task runs, or waits for a processor. Every user may read that, unlike read_task_place.
bool is_runnable(Tid tid);

} // namespace ktrace::os
