#include "engine/calls/repeated_hit.h"

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

void remember_hit(Task &task, VirtAddr site, os::Stopped &stopped) {
    task.repeat.at = site;
    task.repeat.sp = stopped.sp();
    task.repeat.follows = 0;
}

void forget_hit(Task &task) {
    task.repeat.at = task.repeat.sp = VirtAddr{};
    task.repeat.follows = 0;
}

void follow_handler(Task &task, os::Stopped &stopped, int signal) {
    if (!task.repeat.at || stopped.pc() != task.repeat.at || stopped.sp() != task.repeat.sp) return;
    auto status = os::read_status(task.tid.value);
    bool is_caught = status && (status->caught & signal_bit(signal)) != 0;
    task.repeat.follows = is_caught ? longest_followed : 0; // else the instruction is what follows
}

void see_return(Process &process, Task &task, os::Stopped &stopped) {
    if (--task.repeat.follows == 0) {
        forget_hit(task);
        return;
    }
    auto entry = os::syscall_entry(task.tid);
    if (!entry || entry->number != SYS_rt_sigreturn) return;
    auto to = arch::signal_return(stopped.registers(), *process.space->memory);
    if (!to || to->sp != task.repeat.sp) return; // from a handler of another signal, which came in between
    if (to->pc == task.repeat.at)
        task.repeat.follows = 0;
    else
        forget_hit(task);
}

bool is_repeated_hit(const AddressSpaceState &space, const Task &task, const Site &site, os::Stopped &stopped) {
    if (!space.restarts.empty() && find_restart(space, site.at, stopped.sp()) != nullptr) return true;
    return task.repeat.at == site.at && task.repeat.follows == 0 && task.repeat.sp == stopped.sp();
}

void take_hit(AddressSpaceState &space, Task &task, const Site &site, os::Stopped &stopped) {
    if (!space.restarts.empty() && take_restart(space, site.at, stopped.sp())) return;
    if (!task.repeat.at) return;
    const VirtAddr sp = stopped.sp();
    const bool is_there = task.repeat.at == site.at && task.repeat.sp == sp;
    if (is_there || (task.repeat.follows == 0 && sp > task.repeat.sp)) forget_hit(task);
}

} // namespace ktrace::engine
