#include "base/errno_names.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace ktrace {
namespace {

TEST(ErrnoNames, AreThoseOfErrno) {
    EXPECT_EQ(errno_number("EPERM"), EPERM);
    EXPECT_EQ(errno_number("ENOSPC"), ENOSPC);
    EXPECT_EQ(errno_number("EHWPOISON"), EHWPOISON);
}

TEST(ErrnoNames, MayBeTwoForOneNumber) {
    EXPECT_EQ(errno_number("EWOULDBLOCK"), EAGAIN);
    EXPECT_EQ(errno_number("EAGAIN"), EAGAIN);
    EXPECT_EQ(errno_number("ENOTSUP"), EOPNOTSUPP);
}

TEST(ErrnoNames, AreNoOthers) {
    for (const char *name : {"", "E", "enoent", "ENOENTS", "EOF", "ESUCCESS"}) EXPECT_FALSE(errno_number(name)) << name;
}

TEST(ErrnoNames, AreFoundByTheirNumber) {
    EXPECT_EQ(errno_name(ENOENT), "ENOENT");
    EXPECT_EQ(errno_name(EAGAIN), "EAGAIN");
    for (std::int64_t none : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{4095}, std::int64_t{1} << 32 | ENOENT})
        EXPECT_EQ(errno_name(none), "") << none;
}

} // namespace
} // namespace ktrace
