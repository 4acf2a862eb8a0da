#include "os/facts/blocked_syscall.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"

namespace ktrace::os {

namespace {

/// nanosleep and its like keep the end of the sleep, select and its like write back what is left of it.
bool keeps_its_time(long number) {
    switch (number) {
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_futex:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_restart_syscall:
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_pause:
#endif
    case SYS_rt_sigsuspend: return true;
    default: return false;
    }
}

/// A time-out among the arguments of a call that fails with EINTR and does not report what is left of it.
bool has_time_out(const TaskPlace &place) {
    constexpr std::uint64_t enter_ext_arg = 8; // IORING_ENTER_EXT_ARG: there may be one in there
    switch (place.syscall) {
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait: return static_cast<std::int32_t>(place.arguments[3]) > 0; // milliseconds, -1: none
    case SYS_epoll_pwait2:
    case SYS_semtimedop: return place.arguments[3] != 0;
    case SYS_rt_sigtimedwait: return place.arguments[2] != 0;
    case SYS_io_getevents:
    case SYS_io_pgetevents: return place.arguments[4] != 0;
    case SYS_io_uring_enter: return (place.arguments[3] & enter_ext_arg) != 0;
    default: return false;
    }
}

/// Interrupted when it has done a part, it answers with that, and few programs ask whether it was all.
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
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_connect: return SO_SNDTIMEO;
    default: return 0;
    }
}

/// The file that the task's number leads to, as /proc shows it (its beginning); empty: it may be anything.
std::string file_shown(Pid pid, Tid tid, std::uint64_t file) {
    const std::string path = "/proc/" + std::to_string(pid.value) + "/task/" + std::to_string(tid.value) + "/fd/" +
                             std::to_string(static_cast<int>(file));
    std::array<char, 16> text{};
    const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

/// The task, whose files can be had although its leader has ended; before Linux 6.9 the process, if that has not.
Fd open_task(Pid pid, Tid tid) {
    constexpr unsigned of_thread = O_EXCL; // PIDFD_THREAD
    Fd task(static_cast<int>(::syscall(SYS_pidfd_open, tid.value, of_thread)));
    return task ? std::move(task) : Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid.value, 0)));
}

bool has_time_limit(const Fd &socket, int option) {
    timeval limit{};
    socklen_t size = sizeof limit;
    if (::getsockopt(socket.get(), SOL_SOCKET, option, &limit, &size) != 0) return false; // no socket
    return limit.tv_sec != 0 || limit.tv_usec != 0;
}

/// A reader waits until so many bytes have come (SO_RCVLOWAT); interrupted, it answers with those that are there.
bool waits_for_several_bytes(const Fd &socket) {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    return ::getsockopt(socket.get(), SOL_SOCKET, SO_RCVLOWAT, &bytes, &size) == 0 && bytes > 1;
}

/// A terminal whose reader waits for so many bytes, or for so long (termios(3), VMIN and VTIME).
bool has_read_limit(const Fd &terminal) {
    termios mode{};
    if (::tcgetattr(terminal.get(), &mode) != 0 || (mode.c_lflag & ICANON) != 0) return false;
    return mode.c_cc[VMIN] > 1 || (mode.c_cc[VMIN] == 0 && mode.c_cc[VTIME] > 0);
}

/// Asks the file itself, a socket or a terminal. Where the kernel does not let us (before 5.6; a sandbox), a socket may
/// have a limit.
bool is_limited_by_file(Pid pid, Tid tid, const TaskPlace &place) {
    int option = limiting_option(place.syscall);
    if (option == 0) return false;
    const std::string shown = file_shown(pid, tid, place.arguments[0]);
    if (shown.starts_with("pipe:") || shown.starts_with("anon_inode:")) return false;
    const bool is_device = shown.starts_with('/');
    const Fd process = open_task(pid, tid);
    if (!process) return !is_device;
    Fd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), place.arguments[0], 0)));
    if (!copy) return !is_device;
    const bool reads = place.syscall == SYS_read || place.syscall == SYS_readv;
    if (is_device) return reads && has_read_limit(copy);
    return has_time_limit(copy, option) || (option == SO_RCVTIMEO && waits_for_several_bytes(copy));
}

/// The time-out of select and its like, which the kernel makes what is left of it; 0: none, or another call.
VirtAddr time_out_of_select(const TaskPlace &place) {
    switch (place.syscall) {
    case SYS_ppoll: return VirtAddr{place.arguments[2]};
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6: return VirtAddr{place.arguments[4]};
    default: return {};
    }
}

/// The kernel writes what is left of the time-out when it is interrupted, and cannot, or may not: the call fails, or
/// begins anew.
bool cannot_tell_rest(Pid pid, Tid tid, const TaskPlace &place) {
    constexpr std::int64_t near_by = 65536; // on the stack, as usual
    VirtAddr at = time_out_of_select(place);
    if (at.value != 0 && (read_personality(pid, tid) & STICKY_TIMEOUTS) != 0) return true;
    if (at.value == 0) at = told_rest_at(pid, tid, place);
    if (at.value == 0 || (place.sp <= at && at < place.sp + near_by)) return false;
    auto maps = read_maps(pid);
    return maps && std::none_of(maps->begin(), maps->end(),
                                [&](const Mapping &mapping) { return mapping.contains(at) && mapping.writable; });
}

/// In the middle of a call, for a page that userfaultfd has to fill in: with an interrupt before it the kernel asks for
/// the page over and over, and does not stop the task.
bool waits_for_page(std::string_view function) { return function == "handle_userfault"; }

/// For the answer of a supervisor that its filter asks (seccomp_unotify(2)): interrupted, it would ask once more,
/// though the supervisor may have done by then what it was asked for.
bool waits_for_supervisor(std::string_view function) { return function.starts_with("seccomp_do_user_notification"); }

/// For the answer of a file system in user space, which sees the interrupt, and may fail the request.
bool waits_for_file_system(std::string_view function) { return function == "request_wait_answer"; }

bool waits_in_the_middle(Pid pid, Tid tid) {
    const std::string function = read_sleep_function(pid, tid);
    return waits_for_page(function) || waits_for_supervisor(function) || waits_for_file_system(function);
}

} // namespace

Interrupted interrupted(const TaskPlace &place, bool limited_by_file) {
    if (place.running || place.syscall < 0) return Interrupted::runs;
    if (place.foreign) return Interrupted::begins_anew; // it may
    if (keeps_its_time(place.syscall)) return Interrupted::goes_on;
    const bool is_lost = limited_by_file || has_time_out(place) || may_end_in_part(place);
    return is_lost ? Interrupted::begins_anew : Interrupted::made_again;
}

Interrupted interrupted(Pid pid, Tid tid) {
    auto place = read_task_place(pid, tid);
    if (!place) return Interrupted::runs;
    if (place->foreign) return interrupted(*place, false);
    const Interrupted sleeper = interrupted(*place, is_limited_by_file(pid, tid, *place));
    if (sleeper == Interrupted::runs) return sleeper;
    return waits_in_the_middle(pid, tid) || cannot_tell_rest(pid, tid, *place) ? Interrupted::begins_anew : sleeper;
}

namespace {

/// Three calls are made again by restart_syscall(2). Where a sleep is, the kernel may show nothing but its own entry.
bool is_sleep_restarted(Pid pid, Tid tid) {
    const std::string function = read_sleep_function(pid, tid);
    return !function.empty() && !function.starts_with("poll") && !function.starts_with("futex");
}

} // namespace

VirtAddr told_rest_at(Pid pid, Tid tid, const TaskPlace &place) {
    constexpr std::uint64_t absolute = 1; // TIMER_ABSTIME
    const auto &arguments = place.arguments;
    if (place.foreign) return {}; // it is not interrupted by us
    if (place.syscall == SYS_nanosleep) return VirtAddr{arguments[1]};
    if (place.syscall == SYS_clock_nanosleep) return VirtAddr{(arguments[1] & absolute) != 0 ? 0 : arguments[3]};
    if (place.syscall != SYS_restart_syscall || !is_sleep_restarted(pid, tid)) return {};
    // Only its first argument shows which of the two was interrupted: a pointer or a clock.
    constexpr std::uint64_t least_pointer = 4096;
    const bool by_clock = arguments[0] < least_pointer || static_cast<std::int64_t>(arguments[0]) < 0;
    return VirtAddr{by_clock ? arguments[3] : arguments[1]};
}

bool has_a_mask_of_its_own(const TaskPlace &place) {
    constexpr std::uint64_t enter_ext_arg = 8; // IORING_ENTER_EXT_ARG: there may be one in there
    if (place.foreign) return true;            // it may
    switch (place.syscall) {
    case SYS_ppoll: return place.arguments[3] != 0;
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return place.arguments[4] != 0;
    case SYS_pselect6:
    case SYS_io_pgetevents: return place.arguments[5] != 0;
    case SYS_io_uring_enter: return (place.arguments[3] & enter_ext_arg) != 0 || place.arguments[4] != 0;
    case SYS_rt_sigtimedwait:
    case SYS_rt_sigsuspend: return true;
    default: return false;
    }
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
