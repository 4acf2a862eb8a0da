#include "engine/transparent/restart/syscall_restart.h"

#include <csignal>
#include <utility>

#include "arch/way_back.h"
#include "base/signals.h"
#include "engine/calls/repeated_hit.h"
#include "os/facts/blocked_syscall.h"
#include "os/proc/procfs.h"
#include "os/tracee/sleepers.h"

namespace ktrace::engine {

using arch::Host;
using os::Stop;

namespace {

/// signal(7): those whose default action is to do nothing. SIGCONT does its work when it is sent.
constexpr std::uint64_t ignored_by_default =
    signal_bit(SIGCHLD) | signal_bit(SIGCONT) | signal_bit(SIGURG) | signal_bit(SIGWINCH);

/// Is it the stop of a signal that the program sees? The kernel discards one that the process ignores when it is sent,
/// but shows it to a tracer, and ends the task's system call for that.
bool is_seen(const Stop &stop) {
    if (stop.kind != Stop::Kind::signal) return false;
    const auto status = os::read_status(stop.tid.value);
    if (!status) return true;
    return ((status->ignored | (ignored_by_default & ~status->caught)) & signal_bit(stop.signal)) == 0;
}

/// The kernel makes the call again when the task goes on.
void see_kernels_restart(Process &process, Task &task, os::Stopped &stopped, bool is_new_hit) {
    Host::Registers again = stopped.registers();
    if (arch::awaits_restart(again)) Host::restart_syscall(again, 0); // as the kernel is about to do
    const VirtAddr at = Host::pc(again);
    if (!process.space->site_at(at)) return;
    if (is_new_hit)
        forget_hit(task);
    else
        remember_hit(task, at, stopped);
}

/// The kernel has moved the pc to a probed call already.
bool is_moved_to_site(Process &process, os::Stopped &stopped) {
    if (!arch::HostNative::moves_to_restart) return false;
    const Site *site = process.space->site_at(stopped.pc());
    return site && site->armed && site->method() == arch::Method::syscall;
}

} // namespace

bool has_begun(Stop::Kind next) { return next == Stop::Kind::syscall; }

void see_restart(Task &task, os::Stopped &stopped) {
    const auto failed = std::exchange(task.restart.failed, std::nullopt);
    if (!failed) return;
    if (has_begun(stopped.stop().kind)) {
        if (arch::HostNative::moves_to_restart) os::note_sleeper(task.tid);
        return;
    }
    stopped.change_registers() = *failed;
    task.step.over = Over::none; // of the way to the call in a slot
    task.step.site = nullptr;
}

void see_interruption(Process &process, Task &task, os::Stopped &stopped) {
    const bool awaits = arch::awaits_restart(stopped.registers()) || is_moved_to_site(process, stopped);
    const bool failed = Host::interrupted_for_good(stopped.registers());
    if (!awaits && !failed) return;
    std::optional<os::TaskPlace> call;
    const auto may_be_made_again = [&] {
        call = os::call_to_make_again(task.pid, task.tid, stopped.registers());
        return call.has_value();
    };
    switch (interruption_of(awaits, failed, is_seen(stopped.stop()), may_be_made_again)) {
    case Interruption::none: break;
    case Interruption::by_kernel: see_kernels_restart(process, task, stopped, false); break;
    case Interruption::new_hit: see_kernels_restart(process, task, stopped, true); break;
    case Interruption::made_again:
        task.restart.failed = stopped.registers();
        Host::restart_syscall(stopped.change_registers(), call->arguments[0]);
        break;
    }
}

void lead_to_copy(Engine &engine, Task &task, os::Stopped &stopped) {
    Process *process = task.step.over == Over::none ? engine.process_of(task) : nullptr;
    Site *site = process ? process->space->site_at(stopped.pc()) : nullptr;
    if (!site || !site->armed || site->method() != arch::Method::syscall) return;
    task.step.over = Over::to_syscall;
    task.step.site = site;
    stopped.set_pc(site->slot + site->placed.copy_at);
}

void renew_interrupt(os::Stopped &stopped) {
    const Host::Registers &now = stopped.registers();
    if (arch::awaits_restart(now) || Host::interrupted_for_good(now)) os::interrupt(stopped.tid());
}

void accept_interruption(os::Stopped &stopped) {
    if (Host::interrupted_for_good(stopped.registers())) Host::let_syscall_fail(stopped.change_registers());
}

} // namespace ktrace::engine
