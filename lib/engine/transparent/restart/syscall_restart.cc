#include "engine/transparent/restart/syscall_restart.h"

#include <csignal>

#include "arch/way_back.h"
#include "base/signals.h"
#include "engine/transparent/repeated_hit.h"
#include "engine/transparent/restart/rest.h"

namespace ktrace::engine {

using arch::Host;

namespace {

/// signal(7): those whose default action is to do nothing. SIGCONT does its work when it is sent.
constexpr std::uint64_t ignored_by_default =
    signal_bit(SIGCHLD) | signal_bit(SIGCONT) | signal_bit(SIGURG) | signal_bit(SIGWINCH);

std::uint64_t passing(const os::ProcessStatus &status) {
    return status.ignored | (ignored_by_default & ~status.caught);
}

} // namespace

bool lets_pass(const os::ProcessStatus &status, int signal) { return (passing(status) & signal_bit(signal)) != 0; }

namespace {

/// At such a stop: is nothing else the reason why its call has ended?
bool is_only_reason(os::Stopped &stopped) {
    auto status = os::read_status(stopped.tid().value);
    if (!status) return false;
    const os::Stop &stop = stopped.stop();
    if (stop.kind == os::Stop::Kind::signal && !lets_pass(*status, stop.signal)) return false;
    return (status->pending & ~status->blocked & ~passing(*status)) == 0;
}

} // namespace

bool undo_interruption(os::Stopped &stopped) {
    if (!Host::interrupted_for_good(stopped.registers()) || !is_only_reason(stopped)) return false;
    Host::restart_syscall(stopped.change_registers());
    return true;
}

namespace {

void see_to_rest(Process &process, Task &task, os::Stopped &stopped) {
    if (!task.rest) return;
    if (!is_only_reason(stopped))
        tell_rest(process, task, stopped);
    else if (stopped.stop().kind == os::Stop::Kind::started)
        take_back_rest(process, task, stopped);
}

/// It has not gone on since its call was to be made again.
bool is_still_undone(const Task &task, os::Stopped &stopped) {
    return task.undone && task.undone->again == stopped.registers();
}

void let_undone_fail(Task &task, os::Stopped &stopped) {
    stopped.change_registers() = task.undone->failed;
    task.undone.reset();
    forget_retry(task);
}

} // namespace

void go_unnoticed(Process &process, Task &task, os::Stopped &stopped) {
    if (is_still_undone(task, stopped)) {
        see_late_signal(task, stopped);
        return;
    }
    task.undone.reset();
    Host::Registers again = stopped.registers();
    if (!arch::awaits_restart(again)) {
        if (!undo_interruption(stopped)) return;
        task.undone = Undone{again, stopped.registers(), false};
        if (process.space->site_at(stopped.pc())) remember_retry(task, stopped.pc(), stopped);
        return;
    }
    see_to_rest(process, task, stopped);
    Host::restart_syscall(again); // as the kernel is about to do
    const VirtAddr at = Host::pc(again);
    if (!process.space->site_at(at)) return;
    if (is_only_reason(stopped))
        remember_retry(task, at, stopped);
    else
        forget_retry(task); // a handler comes in between
}

void renew_interrupt(os::Stopped &stopped) {
    const Host::Registers &now = stopped.registers();
    if (arch::awaits_restart(now) || Host::interrupted_for_good(now)) os::interrupt(stopped.tid());
}

void accept_interruption(Task &task, os::Stopped &stopped) {
    if (is_still_undone(task, stopped)) let_undone_fail(task, stopped);
    if (Host::interrupted_for_good(stopped.registers())) Host::let_syscall_fail(stopped.change_registers());
}

void note_group_stop(Engine &engine, Pid pid) {
    for (auto &[tid, task] : engine.tasks)
        if (task.undone && task.pid == pid) task.undone->fails_now = true;
}

void note_stop_signal(Engine &engine, const Task &told, int signal) {
    if ((stop_signals & signal_bit(signal)) == 0) return;
    auto status = os::read_status(told.tid.value);
    if (!status || ((status->ignored | status->caught) & signal_bit(signal)) != 0) return;
    note_group_stop(engine, told.pid);
}

void see_late_signal(Task &task, os::Stopped &stopped) {
    if (is_still_undone(task, stopped) && (task.undone->fails_now || !is_only_reason(stopped)))
        let_undone_fail(task, stopped);
}

} // namespace ktrace::engine
