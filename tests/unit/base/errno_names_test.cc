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

} // namespace
} // namespace ktrace
