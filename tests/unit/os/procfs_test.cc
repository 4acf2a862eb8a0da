// The parsers of /proc, on text; and the decoder of status words.
#include "os/proc/procfs.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "os/tracee/wait.h"

namespace ktrace::os {
namespace {

TEST(Maps, ReadsEveryKindOfLine) {
    auto maps = parse_maps("55d0c3a00000-55d0c3a01000 r-xp 00001000 fe:00 1234                       /usr/bin/a b\n"
                           "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
                           "7ffc0a000000-7ffc0a021000 rw-p 00000000 00:00 0                          [stack]\n"
                           "7f1000000000-7f1000001000 rwxs 00000000 00:01 99 /memfd:jit (deleted)\n"
                           "7f2000000000-7f2000001000 r--p 00000000 fe:00 7 /tmp/odd\\012name\n"
                           "not a line\n");
    ASSERT_EQ(maps.size(), 5U);
    EXPECT_EQ(maps[0].path, "/usr/bin/a b");
    EXPECT_EQ(maps[0].offset, 0x1000U);
    EXPECT_EQ(maps[0].inode, 1234U);
    EXPECT_TRUE(maps[0].executable && maps[0].readable && !maps[0].writable && !maps[0].shared);
    EXPECT_EQ(maps[1].path, "");
    EXPECT_EQ(maps[2].path, "[stack]");
    EXPECT_TRUE(maps[3].deleted && maps[3].shared);
    EXPECT_EQ(maps[3].path, "/memfd:jit");
    EXPECT_EQ(maps[4].path, "/tmp/odd\nname");
    EXPECT_TRUE(maps[0].contains(VirtAddr{0x55d0c3a00fff}));
    EXPECT_FALSE(maps[0].contains(VirtAddr{0x55d0c3a01000}));
}

TEST(Status, ReadsWhatKtraceNeeds) {
    auto status =
        parse_status("Name:\tmy prog\nState:\tt (tracing stop)\nTgid:\t42\nPid:\t43\nPPid:\t7\nTracerPid:\t99\n"
                     "Uid:\t1000\t1001\t1001\t1001\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000000002\n"
                     "SigBlk:\t0000000000010000\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000010\nSeccomp:\t2\n"
                     "Seccomp_filters:\t3\n");
    EXPECT_EQ(status.name, "my prog");
    EXPECT_EQ(status.state, 't');
    EXPECT_EQ(status.tgid, 42);
    EXPECT_EQ(status.ppid, 7);
    EXPECT_EQ(status.tracer, 99);
    EXPECT_EQ(status.uid, 1000U);
    EXPECT_EQ(status.euid, 1001U);
    EXPECT_EQ(status.pending, 3U);
    EXPECT_EQ(status.blocked, 0x10000U);
    EXPECT_EQ(status.caught, 0x10U);
    EXPECT_EQ(status.seccomp, 2);
    EXPECT_EQ(status.seccomp_filters, 3);
}

TEST(Status, NamesAreWhatTheProcessCallsItself) {
    EXPECT_EQ(parse_status("Name:\ta\\\\b\\nc\x1b\\\\n\nState:\tS (sleeping)\n").name, "a\\b\nc\x1b\\n");
}

TEST(TaskPlace, RunningAsleepAndBlocked) {
    EXPECT_TRUE(parse_task_place("running\n")->running);
    auto asleep = parse_task_place("232 0x3 0x7ffd 0x1 0xffffffff 0x0 0x0 0x7ffd0000 0x7f00deadbeef\n");
    ASSERT_TRUE(asleep);
    EXPECT_EQ(asleep->syscall, 232);
    EXPECT_EQ(asleep->arguments[3], 0xffffffffU);
    EXPECT_EQ(asleep->sp, VirtAddr{0x7ffd0000});
    EXPECT_EQ(asleep->pc, VirtAddr{0x7f00deadbeef});
    auto blocked = parse_task_place("-1 0x7ffd0000 0x401000\n");
    ASSERT_TRUE(blocked);
    EXPECT_EQ(blocked->syscall, -1);
    EXPECT_EQ(blocked->pc, VirtAddr{0x401000});
    EXPECT_FALSE(parse_task_place(""));
}

TEST(TaskStat, IsReadBehindAnyName) {
    const std::string rest = " t 1 42 42 0 -1 1077936192 136 0 0 0 0 0 0 0 20 0 1 0 1150000 2830336 240 "
                             "18446744073709551615 1 2 3 0 0 16 65536 6 8210 0 0 0 17 1 0 0 0 0 0\n";
    auto stat = parse_task_stat("42 (odd) R name)" + rest);
    ASSERT_TRUE(stat);
    EXPECT_EQ(stat->state, 't');
    EXPECT_EQ(stat->caught, 8210U);
    EXPECT_EQ(stat->processor, 1);
    EXPECT_FALSE(parse_task_stat("42 (cut) t 1 42"));
    EXPECT_FALSE(parse_task_stat(""));
}

TEST(StatusWord, IsDecodedOnce) {
    auto kind = [](int code, int status) { return decode_stop(Tid{1}, code, status).kind; };
    EXPECT_EQ(kind(CLD_TRAPPED, SIGTRAP), Stop::Kind::signal);
    EXPECT_EQ(kind(CLD_TRAPPED, SIGTRAP | 0x80), Stop::Kind::syscall);
    EXPECT_EQ(kind(CLD_TRAPPED, SIGTRAP | (PTRACE_EVENT_CLONE << 8)), Stop::Kind::clone);
    EXPECT_EQ(kind(CLD_TRAPPED, SIGTRAP | (PTRACE_EVENT_EXEC << 8)), Stop::Kind::exec);
    EXPECT_EQ(kind(CLD_TRAPPED, SIGTRAP | (PTRACE_EVENT_STOP << 8)), Stop::Kind::started);
    EXPECT_EQ(kind(CLD_TRAPPED, SIGTSTP | (PTRACE_EVENT_STOP << 8)), Stop::Kind::group);
    EXPECT_EQ(kind(CLD_EXITED, 3), Stop::Kind::exited);
    EXPECT_EQ(kind(CLD_DUMPED, SIGSEGV), Stop::Kind::killed);
    EXPECT_EQ(decode_stop(Tid{1}, CLD_EXITED, 3).status, 3);
    EXPECT_EQ(decode_stop(Tid{1}, CLD_TRAPPED, SIGUSR1).signal, SIGUSR1);
}

TEST(Own, ProcessIsReadable) {
    Pid self{::getpid()};
    auto maps = read_maps(self);
    ASSERT_TRUE(maps);
    EXPECT_FALSE(maps->empty());
    EXPECT_FALSE(read_tasks(self).empty());
    EXPECT_TRUE(read_auxv(self, 6)); // AT_PAGESZ
    EXPECT_FALSE(read_maps(Pid{-5}));
}

TEST(OwnNames, AreThoseOfNow) {
    Names names;
    Pid self{::getpid()};
    char before[16];
    ::prctl(PR_GET_NAME, before);
    EXPECT_EQ(names.read(self, Tid{self.value}), before);
    ::prctl(PR_SET_NAME, "an\nother");
    EXPECT_EQ(names.read(self, Tid{self.value}), "an\nother");
    ::prctl(PR_SET_NAME, before);
    EXPECT_EQ(names.read(Pid{1}, Tid{1 + 128 * 1000000}), ""); // no such task, kept where 1 would be
    EXPECT_FALSE(names.read(Pid{1}, Tid{1}).empty());
    EXPECT_EQ(names.read(self, Tid{self.value}), before);
}

} // namespace
} // namespace ktrace::os
