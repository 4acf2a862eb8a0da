// Interrupted system calls, by number and arguments: their results, and whether they are made again by hand.
#include "os/facts/blocked_syscall.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace ktrace::os {
namespace {

constexpr std::uint64_t pointer = 0x7ffc0000;

constexpr std::uint64_t no_wait = 1; // IORING_ENTER_GETEVENTS

struct Case {
    const char *what;
    long number;
    std::array<std::uint64_t, 6> arguments;
    bool on_socket; // with a time-out
    Interrupted then;
    bool again; // where it shows -EINTR
};

constexpr Case cases[] = {
    {"nanosleep", SYS_nanosleep, {pointer, pointer}, false, Interrupted::restarted, false},
    {"futex", SYS_futex, {pointer, 0, 1, pointer}, false, Interrupted::restarted, false},
    {"ppoll", SYS_ppoll, {pointer, 1, pointer, 0, 8}, false, Interrupted::restarted, true},
    {"wait4", SYS_wait4, {~0ULL, pointer, 0, 0}, false, Interrupted::restarted, false},
    {"restart_syscall", SYS_restart_syscall, {}, false, Interrupted::restarted, false},
    {"epoll_pwait, 5 ms", SYS_epoll_pwait, {3, pointer, 1, 5, 0, 8}, false, Interrupted::by_hand, true},
    {"epoll_pwait, for ever", SYS_epoll_pwait, {3, pointer, 1, 0xffffffff, 0, 8}, false, Interrupted::by_hand, true},
    {"epoll_pwait2", SYS_epoll_pwait2, {3, pointer, 1, pointer, 0, 8}, false, Interrupted::by_hand, true},
    {"semop", SYS_semop, {1, pointer, 1}, false, Interrupted::by_hand, true},
    {"semtimedop", SYS_semtimedop, {1, pointer, 1, pointer}, false, Interrupted::by_hand, true},
    {"sigtimedwait", SYS_rt_sigtimedwait, {pointer, 0, pointer, 8}, false, Interrupted::by_hand, true},
    {"io_getevents", SYS_io_getevents, {pointer, 1, 1, pointer, pointer}, false, Interrupted::by_hand, true},
    {"io_getevents of several", SYS_io_getevents, {pointer, 2, 4, pointer, 0}, false, Interrupted::cut_short, true},
    {"io_pgetevents", SYS_io_pgetevents, {pointer, 1, 1, pointer, pointer}, false, Interrupted::restarted, false},
    {"io_uring_enter", SYS_io_uring_enter, {5, 0, 1, no_wait, 0}, false, Interrupted::by_hand, true},
    {"io_uring_enter that submits", SYS_io_uring_enter, {5, 1, 1, no_wait, 0}, false, Interrupted::cut_short, false},
    {"read", SYS_read, {0, pointer, 1}, false, Interrupted::restarted, false},
    {"read of a socket", SYS_read, {4, pointer, 1}, true, Interrupted::by_hand, true},
    {"accept", SYS_accept, {4, 0, 0}, true, Interrupted::by_hand, true},
    {"connect", SYS_connect, {4, pointer, 16}, true, Interrupted::by_hand, true},
    {"recv", SYS_recvfrom, {4, pointer, 4096, 0}, true, Interrupted::by_hand, true},
    {"recv of all", SYS_recvfrom, {4, pointer, 4096, MSG_WAITALL}, true, Interrupted::cut_short, true},
    {"recvmmsg", SYS_recvmmsg, {4, pointer, 8, 0, 0}, false, Interrupted::cut_short, false},
    {"close", SYS_close, {4}, true, Interrupted::cut_short, false},
    {"write", SYS_write, {1, pointer, 4096}, false, Interrupted::cut_short, false},
    {"write of a byte", SYS_write, {1, pointer, 1}, false, Interrupted::restarted, false},
    {"send", SYS_sendto, {4, pointer, 4096, 0}, true, Interrupted::cut_short, true},
    {"not in a call", -1, {}, false, Interrupted::runs, false},
};

TEST(BlockedSyscall, KnowsWhatAnInterruptWouldDo) {
    for (const Case &row : cases) {
        TaskPlace place;
        place.syscall = row.number;
        std::copy(row.arguments.begin(), row.arguments.end(), place.arguments);
        EXPECT_EQ(interrupted(place, row.on_socket), row.then) << row.what;
        EXPECT_EQ(may_be_made_again(place, row.on_socket), row.again) << row.what;
    }
    TaskPlace running;
    running.running = true;
    EXPECT_EQ(interrupted(running, false), Interrupted::runs);
}

} // namespace
} // namespace ktrace::os
