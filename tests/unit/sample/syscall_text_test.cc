// System calls as text and JSON.
#include "sample/syscall_text.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace ktrace::sample {
namespace {

os::TaskPlace call(long number, std::initializer_list<std::uint64_t> arguments) {
    os::TaskPlace place;
    place.syscall = number;
    std::copy(arguments.begin(), arguments.end(), place.arguments);
    return place;
}

TEST(SyscallText, DescriptorsCountsPointersAndFlags) {
    const auto wait = call(SYS_epoll_pwait, {5, 0x7f00, 128, 0xffffffff, 0, 8});
    EXPECT_EQ(syscall_text(wait), "epoll_pwait(5, 0x7f00, 128, -1, NULL, 8)");
    EXPECT_EQ(syscall_arguments_json(wait), R"([5,"0x7f00",128,-1,"0x0",8])");
    EXPECT_EQ(syscall_text(call(SYS_futex, {0x7f00, 0x80, 2})), "futex(0x7f00, 0x80, 2, NULL, NULL)");
    EXPECT_EQ(syscall_text(call(SYS_lseek, {3, ~std::uint64_t{0}, 1})), "lseek(3, -1, 1)");
}

TEST(SyscallText, WithoutArguments) {
    EXPECT_EQ(syscall_text(call(SYS_restart_syscall, {1, 2, 3})), "restart_syscall()");
    EXPECT_EQ(syscall_arguments_json(call(SYS_sync, {1})), "[]");
}

TEST(SyscallText, OneThatIsNotKnownHasAllSix) {
    EXPECT_EQ(syscall_text(call(60000, {1, 2})), "call 60000(0x1, 0x2, 0x0, 0x0, 0x0, 0x0)");
}

} // namespace
} // namespace ktrace::sample
