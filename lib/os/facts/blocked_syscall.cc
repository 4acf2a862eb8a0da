#include "os/facts/blocked_syscall.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/tracee/sleepers.h"

namespace ktrace::os {

namespace {

/// True for a call that returns with the part that is done when it is interrupted: few programs check for that.
bool may_end_in_part(const TaskPlace &place) {
    constexpr std::uint64_t enter_get_events = 1; // IORING_ENTER_GETEVENTS: it submits, then waits for so many
    const auto &arguments = place.arguments;
    switch (place.syscall) {
    case SYS_write:
    case SYS_sendto: return arguments[2] > 1; // bytes
    case SYS_writev:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_tee:
    case SYS_vmsplice:
    case SYS_pwritev2: return true; // at -1 as writev
    case SYS_close:                 // of a socket with SO_LINGER: it waits no more, and the descriptor is gone
    case SYS_close_range:
#ifdef SYS_dup2
    case SYS_dup2:
#endif
    case SYS_dup3: return true;
    case SYS_recvfrom: return (arguments[3] & MSG_WAITALL) != 0;
    case SYS_recvmsg: return (arguments[2] & MSG_WAITALL) != 0;
    case SYS_recvmmsg: return arguments[2] > 1 || (arguments[3] & MSG_WAITALL) != 0; // messages
    case SYS_io_getevents:
    case SYS_io_pgetevents: return arguments[1] > 1; // events
    case SYS_io_uring_enter: return (arguments[3] & enter_get_events) != 0 && (arguments[1] > 0 || arguments[2] > 1);
    default: return false;
    }
}

/// SO_RCVTIMEO or SO_SNDTIMEO: the one that limits a call; 0: none.
int limiting_option(long number) {
    switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_preadv2:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4: return SO_RCVTIMEO;
    case SYS_write:
    case SYS_writev:
    case SYS_pwritev2:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_connect: return SO_SNDTIMEO;
    default: return 0;
    }
}

/// Is the task's number for a file a socket? Also where /proc does not say.
bool is_socket(Pid pid, Tid tid, std::uint64_t file) {
    const std::string path = "/proc/" + std::to_string(pid.value) + "/task/" + std::to_string(tid.value) + "/fd/" +
                             std::to_string(static_cast<int>(file));
    std::array<char, 16> text{};
    const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
    return size < 0 || std::string_view(text.data(), static_cast<std::size_t>(size)).starts_with("socket:");
}

/// The task, whose files can be had although its leader has ended; before Linux 6.9 the process, if that has not.
Fd open_task(Pid pid, Tid tid) {
    constexpr unsigned of_thread = O_EXCL; // PIDFD_THREAD
    Fd task(static_cast<int>(::syscall(SYS_pidfd_open, tid.value, of_thread)));
    return task ? std::move(task) : Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid.value, 0)));
}

/// Asks the socket itself. Where the kernel does not let us (before 5.6; a sandbox), it may have a limit.
bool has_time_limit(Pid pid, Tid tid, const TaskPlace &place) {
    const int option = limiting_option(place.syscall);
    if (option == 0 || !is_socket(pid, tid, place.arguments[0])) return false;
    const Fd task = open_task(pid, tid);
    const Fd copy(task ? static_cast<int>(::syscall(SYS_pidfd_getfd, task.get(), place.arguments[0], 0)) : -1);
    if (!copy) return true;
    timeval limit{};
    socklen_t size = sizeof limit;
    if (::getsockopt(copy.get(), SOL_SOCKET, option, &limit, &size) != 0) return false; // no socket
    return limit.tv_sec != 0 || limit.tv_usec != 0;
}

/// In the kernel's functions that wait for another process's answer.
bool waits_for_an_answer(Pid pid, Tid tid) {
    const std::string function = read_sleep_function(pid, tid);
    return function == "handle_userfault" || function == "request_wait_answer" ||
           function.starts_with("seccomp_do_user_notification");
}

/// The calls that always show -EINTR.
bool always_fails(const TaskPlace &place) {
    switch (place.syscall) {
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents: return true;
    case SYS_io_uring_enter: return place.arguments[1] == 0; // all was submitted
    default: return false;
    }
}

/// Those that do where the kernel cannot write what is left of the time-out, or must not (read-only memory,
/// STICKY_TIMEOUTS of personality(2)).
bool fails_with_constant_time_out(const TaskPlace &place) {
    switch (place.syscall) {
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6:
    case SYS_ppoll: return true;
    default: return false;
    }
}

} // namespace

bool may_be_made_again(const TaskPlace &place, bool on_socket) {
    return always_fails(place) || fails_with_constant_time_out(place) ||
           (on_socket && limiting_option(place.syscall) != 0);
}

std::optional<TaskPlace> interrupted_call(Pid pid, Tid tid, const arch::Host::Registers &registers) {
    if (!arch::HostNative::was_in_call(tid, registers)) return std::nullopt;
    if (arch::HostNative::moves_to_restart && arch::Host::interrupted_for_good(registers)) {
        auto slept_in = noted_sleeper(tid);
        return slept_in && slept_in->pc == arch::Host::pc(registers) ? slept_in : std::nullopt;
    }
    arch::HostNative::show_call(tid, registers);
    auto place = read_task_place(pid, tid);
    arch::HostNative::hide_call(tid);
    return place;
}

std::optional<TaskPlace> call_to_make_again(Pid pid, Tid tid, const arch::Host::Registers &registers) {
    const auto place = interrupted_call(pid, tid, registers);
    const bool may = place && may_be_made_again(*place, is_socket(pid, tid, place->arguments[0]));
    return may ? place : std::nullopt;
}

Interrupted interrupted(const TaskPlace &place, bool has_time_limit) {
    if (place.running || place.syscall < 0) return Interrupted::runs;
    if (may_end_in_part(place)) return Interrupted::cut_short;
    return always_fails(place) || (has_time_limit && limiting_option(place.syscall) != 0) ? Interrupted::by_hand
                                                                                          : Interrupted::restarted;
}

Interrupted interrupted(Pid pid, Tid tid) {
    const auto place = read_task_place(pid, tid);
    if (!place) return Interrupted::runs;
    const Interrupted sleeper = interrupted(*place, has_time_limit(pid, tid, *place));
    const bool is_asked = sleeper == Interrupted::restarted || sleeper == Interrupted::by_hand;
    return is_asked && waits_for_an_answer(pid, tid) ? Interrupted::cut_short : sleeper;
}

bool sleeps_deeply(Tid tid) {
    auto status = read_status(tid.value);
    return status && status->state == 'D';
}

bool is_runnable(Tid tid) {
    auto status = read_status(tid.value);
    return status && status->state == 'R';
}

} // namespace ktrace::os
