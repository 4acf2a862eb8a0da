// The decisions on a system call that a stop has interrupted, by tables.
#include "engine/transparent/restart/syscall_restart.h"

#include <gtest/gtest.h>

namespace ktrace::engine {
namespace {

using Kind = os::Stop::Kind;

TEST(InterruptionOf, EveryRow) {
    const struct {
        const char *what;
        bool awaits_restart, failed, is_seen, may_be_made_again;
        Interruption interruption;
    } rows[] = {
        {"no call, or one that has ended by itself", false, false, false, true, Interruption::none},
        {"a read, an interrupt of ours", true, false, false, true, Interruption::by_kernel},
        {"a nanosleep, a signal that the process ignores", true, false, false, false, Interruption::by_kernel},
        {"a read, a signal with a handler that restarts calls", true, false, true, true, Interruption::new_hit},
        {"epoll_wait, an interrupt of ours", false, true, false, true, Interruption::made_again},
        {"epoll_wait, SIGCHLD without a handler", false, true, false, true, Interruption::made_again},
        {"epoll_wait, a signal with a handler: EINTR is the program's", false, true, true, true, Interruption::none},
        {"restart_syscall, or io_uring_enter with something to submit", false, true, false, false, Interruption::none},
    };
    for (const auto &row : rows)
        EXPECT_EQ(interruption_of(row.awaits_restart, row.failed, row.is_seen, [&] { return row.may_be_made_again; }),
                  row.interruption)
            << row.what;
}

TEST(InterruptionOf, AsksOnlyWhereItIsOpen) {
    const auto never = []() -> bool {
        ADD_FAILURE() << "asked";
        return true;
    };
    EXPECT_EQ(interruption_of(true, false, false, never), Interruption::by_kernel);
    EXPECT_EQ(interruption_of(false, true, true, never), Interruption::none);
    EXPECT_EQ(interruption_of(false, false, false, never), Interruption::none);
}

TEST(HasBegun, AtTheCallsEntryOnly) {
    const struct {
        Kind next;
        bool begun;
    } rows[] = {
        {Kind::syscall, true}, // it sleeps anew, with its whole time-out
        {Kind::signal, false}, // came first: EINTR for a handler
        {Kind::group, false},  // job control ends these calls, with and without a tracer
        {Kind::started, false}, {Kind::clone, false}, {Kind::fork, false}, {Kind::exec, false},
    };
    for (const auto &row : rows) EXPECT_EQ(has_begun(row.next), row.begun) << static_cast<int>(row.next);
}

} // namespace
} // namespace ktrace::engine
