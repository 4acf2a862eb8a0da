#include "os/asleep.h"

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

/// A time-out among the arguments of a call that fails with EINTR and does not tell what is left of it.
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
    case SYS_vmsplice: return true;
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

/// What the task's number for a file leads to is no socket. False: it may be one.
bool is_no_socket(Pid pid, Tid tid, std::uint64_t file) {
    constexpr std::string_view kind = "socket:";
    const std::string path = "/proc/" + std::to_string(pid.value) + "/task/" + std::to_string(tid.value) + "/fd/" +
                             std::to_string(static_cast<int>(file));
    std::array<char, kind.size()> text{};
    const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
    return size > 0 && std::string_view(text.data(), static_cast<std::size_t>(size)) != kind;
}

/// The task, whose files can be had although its leader has ended; before Linux 6.9 the process, if that has not.
Fd open_task(Pid pid, Tid tid) {
    constexpr unsigned of_thread = O_EXCL; // PIDFD_THREAD
    Fd task(static_cast<int>(::syscall(SYS_pidfd_open, tid.value, of_thread)));
    return task ? std::move(task) : Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid.value, 0)));
}

/// Asks the socket itself. Where the kernel does not let us (before 5.6; a sandbox), it may have one.
bool has_socket_timeout(Pid pid, Tid tid, const TaskPlace &place) {
    int option = limiting_option(place.syscall);
    if (option == 0 || is_no_socket(pid, tid, place.arguments[0])) return false;
    const Fd process = open_task(pid, tid);
    if (!process) return true;
    Fd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), place.arguments[0], 0)));
    if (!copy) return true;
    timeval limit{};
    socklen_t size = sizeof limit;
    if (::getsockopt(copy.get(), SOL_SOCKET, option, &limit, &size) != 0) return false; // no socket
    return limit.tv_sec != 0 || limit.tv_usec != 0;
}

/// In the middle of a call, for a page that userfaultfd has to fill in: with an interrupt before it the kernel asks for
/// the page over and over, and does not stop the task.
bool waits_for_page(Pid pid, Tid tid) { return read_sleep_function(pid, tid) == "handle_userfault"; }

} // namespace

Interrupted interrupted(const TaskPlace &place, bool socket_timeout) {
    if (place.running || place.syscall < 0) return Interrupted::runs;
    if (keeps_its_time(place.syscall)) return Interrupted::goes_on;
    const bool is_lost = socket_timeout || has_time_out(place) || may_end_in_part(place);
    return is_lost ? Interrupted::begins_anew : Interrupted::made_again;
}

Interrupted interrupted(Pid pid, Tid tid) {
    auto place = read_task_place(pid, tid);
    if (!place) return Interrupted::runs;
    const Interrupted sleeper = interrupted(*place, has_socket_timeout(pid, tid, *place));
    return sleeper != Interrupted::runs && waits_for_page(pid, tid) ? Interrupted::begins_anew : sleeper;
}

bool has_a_mask_of_its_own(const TaskPlace &place) {
    constexpr std::uint64_t enter_ext_arg = 8; // IORING_ENTER_EXT_ARG: there may be one in there
    switch (place.syscall) {
    case SYS_ppoll: return place.arguments[3] != 0;
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return place.arguments[4] != 0;
    case SYS_pselect6:
    case SYS_io_pgetevents: return place.arguments[5] != 0;
    case SYS_io_uring_enter: return (place.arguments[3] & enter_ext_arg) != 0;
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
