#include "engine/transparent/repeated_hit.h"

#include <sys/syscall.h>

#include "arch/way_back.h"
#include "base/signals.h"
#include "engine/calls/goroutines.h"
#include "os/proc/procfs.h"
#include "os/tracee/ptrace.h"

namespace ktrace::engine {

namespace {

/// Stops at system calls (two a call) until a handler is taken for one that does not return.
constexpr std::uint16_t longest_followed = 1000;

} // namespace

void remember_retry(Task &task, VirtAddr site, os::Stopped &stopped) {
    task.retry_at = site;
    task.retry_sp = stopped.sp();
    task.follows = 0;
}

void forget_retry(Task &task) {
    task.retry_at = task.retry_sp = VirtAddr{};
    task.follows = 0;
}

void follow_handler(Task &task, os::Stopped &stopped, int signal) {
    if (!task.retry_at || stopped.pc() != task.retry_at || stopped.sp() != task.retry_sp) return;
    auto status = os::read_status(task.tid.value);
    bool is_caught = status && (status->caught & signal_bit(signal)) != 0;
    task.follows = is_caught ? longest_followed : 0; // else the instruction is what follows
}

void see_return(Process &process, Task &task, os::Stopped &stopped) {
    if (--task.follows == 0) {
        forget_retry(task);
        return;
    }
    auto entry = os::syscall_entry(task.tid);
    if (!entry || entry->number != SYS_rt_sigreturn) return;
    auto to = arch::signal_return(stopped.registers(), *process.space->memory);
    if (!to || to->sp != task.retry_sp) return; // from a handler of another signal, which came in between
    if (to->pc == task.retry_at)
        task.follows = 0;
    else
        forget_retry(task);
}

bool is_repeated_hit(AddressSpaceState &space, Task &task, const Site &site, os::Stopped &stopped) {
    if (!space.restarts.empty() && take_restart(space, site.at, stopped.sp())) return true;
    if (!task.retry_at) return false;
    const VirtAddr sp = stopped.sp();
    const bool is_there = task.retry_at == site.at && task.retry_sp == sp, has_returned = task.follows == 0;
    if (is_there || (has_returned && sp > task.retry_sp)) forget_retry(task);
    return is_there && has_returned;
}

} // namespace ktrace::engine
