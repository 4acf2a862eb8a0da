// asleep: whether a task sleeps, and what an interrupt would make of the system call that it sleeps in.
#pragma once

#include "os/proc/procfs.h"

namespace ktrace::os {

enum class Interrupted : std::uint8_t {
    runs,        // it does not sleep in a system call
    goes_on,     // the kernel makes the call again by itself, with the time that is left
    made_again,  // the call may fail with EINTR; made again it is the same, since it has no time-out
    begins_anew, // made again it waits for the whole of its time-out once more; or it answers with a part of what it
                 // was to do, and is not made again; or another process that answers it sees the interrupt, or
                 // asked twice (a supervisor, seccomp_unotify(2); a file system, fuse(4)); or it cannot be
                 // interrupted, but would use up a processor until it goes on (in a call whose memory userfaultfd(2)
                 // has to fill in)
};

/// `limited_by_file`: the call is one on a socket that limits how long such calls wait, or reads from one or from a
/// terminal that waits for several bytes, or for a time. Pure. Source: which calls the kernel restarts is in
/// signal(7); those with a time-out of their own that it does not, here.
Interrupted interrupted(const TaskPlace &place, bool limited_by_file);

/// The same of a task, as it is now. One that has ended `runs`.
Interrupted interrupted(Pid pid, Tid tid);

/// Where an interrupt makes the kernel write what is left of a sleep (nanosleep, clock_nanosleep), which it does not
/// where the sleep comes to its end; 0: nowhere.
VirtAddr told_rest_at(Pid pid, Tid tid, const TaskPlace &place);

/// The call blocks other signals than the task does outside of it.
bool has_a_mask_of_its_own(const TaskPlace &place);

/// Asleep where no signal wakes it (a parent in vfork): its interrupt is seen when that has ended, before it runs on.
bool sleeps_deeply(Tid tid);

/// The task runs, or waits for a processor. Anybody may ask that, unlike read_task_place.
bool is_runnable(Tid tid);

} // namespace ktrace::os
