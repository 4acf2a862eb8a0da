#include "trap/interruption.h"

#include <csignal>

namespace ktrace::trap {

using arch::Host;
using os::signal_bit;

namespace {

/// signal(7): those whose default action is to do nothing. SIGCONT does its work when it is sent.
constexpr std::uint64_t ignored_by_default =
    signal_bit(SIGCHLD) | signal_bit(SIGCONT) | signal_bit(SIGURG) | signal_bit(SIGWINCH);

std::uint64_t passing(const os::ProcessStatus &status) {
    return status.ignored | (ignored_by_default & ~status.caught);
}

} // namespace

bool lets_pass(const os::ProcessStatus &status, int signal) { return (passing(status) & signal_bit(signal)) != 0; }

bool undo_interruption(os::Stopped &stopped) {
    if (!Host::interrupted_for_good(stopped.registers())) return false;
    auto status = os::read_status(stopped.tid().value);
    if (!status) return false;
    const os::Stop &stop = stopped.stop();
    if (stop.kind == os::Stop::Kind::signal && !lets_pass(*status, stop.signal)) return false;
    if ((status->pending & ~status->blocked & ~passing(*status)) != 0) return false;
    Host::restart_syscall(stopped.change_registers());
    return true;
}

void accept_interruption(os::Stopped &stopped) {
    if (Host::interrupted_for_good(stopped.registers())) Host::let_syscall_fail(stopped.change_registers());
}

} // namespace ktrace::trap
