// Where errno is, by the code of __errno_location: that of C libraries, and of this process, whose errno is known.
#include <cerrno>

#include <gtest/gtest.h>

#include "tests/isa/x86_64/hex.h"
#include "x86_64/errno_location.h"

namespace ktrace::test {

namespace {

using arch::X86_64Errno;

struct Row {
    const char *code;
    std::int64_t offset;
    std::uint64_t slot; // 0: none
};

class ErrnoLocation : public testing::TestWithParam<Row> {};

TEST_P(ErrnoLocation, IsDecoded) {
    const Row &row = GetParam();
    auto found = X86_64Errno::offset(hex(row.code), VirtAddr{0x1000});
    ASSERT_TRUE(found) << row.code;
    EXPECT_EQ(found->offset, row.offset) << row.code;
    EXPECT_EQ(found->slot.value_or(VirtAddr{0}).value, row.slot) << row.code;
}

INSTANTIATE_TEST_SUITE_P(
    Forms, ErrnoLocation,
    testing::Values(Row{"48 8b 05 79 b7 1a 00 64 48 03 04 25 00 00 00 00 c3", 0, 0x1ac780},           // glibc
                    Row{"f3 0f 1e fa 48 8b 05 00 10 00 00 64 48 03 04 25 00 00 00 00 c3", 0, 0x200b}, // with CET
                    Row{"48 c7 c0 b8 ff ff ff 64 48 03 04 25 00 00 00 00 c3", -0x48, 0},              // static
                    Row{"64 48 8b 04 25 00 00 00 00 48 03 05 f0 ff ff ff c3", 0, 0x1000},             // clang
                    Row{"64 48 8b 04 25 00 00 00 00 48 83 c0 34 c3", 0x34, 0},                        // musl
                    Row{"64 48 8b 04 25 00 00 00 00 48 8d 80 b8 ff ff ff c3", -0x48, 0},
                    Row{"64 48 8b 04 25 00 00 00 00 48 2d 48 00 00 00 c3", -0x48, 0}));

TEST(ErrnoLocation, IsNotThatOfOtherCode) {
    for (const char *code : {"", "c3", "48 8b 05 79 b7 1a", "48 8b 05 79 b7 1a 00 64 48 03 04 25 00 00 00 00",
                             "48 8b 05 79 b7 1a 00 64 48 03 04 25 08 00 00 00 c3", "64 48 8b 04 25 00 00 00 00 c3",
                             "48 8d 05 79 b7 1a 00 c3", "55 48 89 e5 5d c3"})
        EXPECT_FALSE(X86_64Errno::offset(hex(code), VirtAddr{0x1000})) << code;
}

#if defined(__x86_64__)
TEST(ErrnoLocation, OfThisProcessIsItsErrno) {
    auto *code = reinterpret_cast<const std::byte *>(&__errno_location);
    auto found = X86_64Errno::offset({code, 32}, VirtAddr{reinterpret_cast<std::uint64_t>(code)});
    ASSERT_TRUE(found);
    const std::int64_t offset =
        found->slot ? *reinterpret_cast<const std::int64_t *>(found->slot->value) : found->offset;
    EXPECT_EQ(static_cast<char *>(__builtin_thread_pointer()) + offset, reinterpret_cast<char *>(&errno));
}
#endif

} // namespace

} // namespace ktrace::test
