// The effect of an interrupt on a system call, by its number and arguments.
#include "os/facts/blocked_syscall.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace ktrace::os {
namespace {

constexpr std::uint64_t pointer = 0x7ffc0000;

struct Row {
    const char *what;
    long number;
    std::array<std::uint64_t, 6> arguments;
    bool limited_by_file;
    Interrupted then;
};

constexpr Row rows[] = {
    {"nanosleep", SYS_nanosleep, {pointer, pointer}, false, Interrupted::goes_on},
    {"futex", SYS_futex, {pointer, 0, 1, pointer}, false, Interrupted::goes_on},
    {"ppoll", SYS_ppoll, {pointer, 1, pointer, 0, 8}, false, Interrupted::goes_on},
    {"wait4", SYS_wait4, {~0ULL, pointer, 0, 0}, false, Interrupted::goes_on},
    {"restart_syscall", SYS_restart_syscall, {}, false, Interrupted::goes_on},
    {"epoll_pwait, 5 ms", SYS_epoll_pwait, {3, pointer, 1, 5, 0, 8}, false, Interrupted::begins_anew},
    {"epoll_pwait, for ever", SYS_epoll_pwait, {3, pointer, 1, 0xffffffff, 0, 8}, false, Interrupted::made_again},
    {"epoll_pwait2", SYS_epoll_pwait2, {3, pointer, 1, pointer, 0, 8}, false, Interrupted::begins_anew},
    {"epoll_pwait2, for ever", SYS_epoll_pwait2, {3, pointer, 1, 0, 0, 8}, false, Interrupted::made_again},
    {"semtimedop", SYS_semtimedop, {1, pointer, 1, pointer}, false, Interrupted::begins_anew},
    {"semop", SYS_semtimedop, {1, pointer, 1, 0}, false, Interrupted::made_again},
    {"sigtimedwait", SYS_rt_sigtimedwait, {pointer, 0, pointer, 8}, false, Interrupted::begins_anew},
    {"sigwait", SYS_rt_sigtimedwait, {pointer, 0, 0, 8}, false, Interrupted::made_again},
    {"io_getevents", SYS_io_getevents, {pointer, 1, 1, pointer, pointer}, false, Interrupted::begins_anew},
    {"read", SYS_read, {0, pointer, 1}, false, Interrupted::made_again},
    {"read of a socket with SO_RCVTIMEO", SYS_read, {4, pointer, 1}, true, Interrupted::begins_anew},
    {"read of a file", SYS_preadv2, {4, pointer, 1}, false, Interrupted::made_again},
    {"close", SYS_close, {4}, false, Interrupted::begins_anew},
    {"write", SYS_write, {1, pointer, 4096}, false, Interrupted::begins_anew},
    {"write of a byte", SYS_write, {1, pointer, 1}, false, Interrupted::made_again},
    {"sendmsg", SYS_sendmsg, {4, pointer, 0}, false, Interrupted::begins_anew},
    {"recv", SYS_recvfrom, {4, pointer, 4096, 0}, false, Interrupted::made_again},
    {"recv of all", SYS_recvfrom, {4, pointer, 4096, MSG_WAITALL}, false, Interrupted::begins_anew},
    {"recvmmsg", SYS_recvmmsg, {4, pointer, 8, 0, 0}, false, Interrupted::begins_anew},
    {"io_getevents, for ever", SYS_io_getevents, {pointer, 1, 1, pointer, 0}, false, Interrupted::made_again},
    {"io_getevents of several, for ever",
     SYS_io_getevents,
     {pointer, 2, 4, pointer, 0},
     false,
     Interrupted::begins_anew},
    {"io_uring_enter", SYS_io_uring_enter, {5, 0, 1, 1, 0}, false, Interrupted::made_again},
    {"io_uring_enter that submits", SYS_io_uring_enter, {5, 1, 1, 1, 0}, false, Interrupted::begins_anew},
    {"not in a call", -1, {}, false, Interrupted::runs},
};

TEST(Asleep, KnowsWhatAnInterruptWouldDo) {
    for (const Row &row : rows) {
        TaskPlace place;
        place.syscall = row.number;
        std::copy(row.arguments.begin(), row.arguments.end(), place.arguments);
        EXPECT_EQ(interrupted(place, row.limited_by_file), row.then) << row.what;
    }
    TaskPlace foreign; // waitpid, by another set of numbers
    foreign.syscall = 7;
    foreign.foreign = true;
    EXPECT_EQ(interrupted(foreign, false), Interrupted::begins_anew);
    EXPECT_TRUE(has_a_mask_of_its_own(foreign));
    TaskPlace running;
    running.running = true;
    EXPECT_EQ(interrupted(running, false), Interrupted::runs);
}

TEST(Asleep, KnowsCallsThatHaveAMaskOfTheirOwn) {
    auto with = [](long number, std::size_t argument, std::uint64_t value) {
        TaskPlace place;
        place.syscall = number;
        place.arguments[argument] = value;
        return has_a_mask_of_its_own(place);
    };
    EXPECT_TRUE(with(SYS_epoll_pwait, 4, pointer));
    EXPECT_FALSE(with(SYS_epoll_pwait, 4, 0));
    EXPECT_TRUE(with(SYS_epoll_pwait2, 4, pointer));
    EXPECT_TRUE(with(SYS_ppoll, 3, pointer));
    EXPECT_FALSE(with(SYS_ppoll, 2, pointer));
    EXPECT_TRUE(with(SYS_io_pgetevents, 5, pointer));
    EXPECT_TRUE(with(SYS_rt_sigtimedwait, 2, pointer));
    EXPECT_TRUE(with(SYS_io_uring_enter, 4, pointer));
    EXPECT_FALSE(with(SYS_io_uring_enter, 3, 1));
    EXPECT_FALSE(with(SYS_semtimedop, 3, pointer));
}

} // namespace
} // namespace ktrace::os
