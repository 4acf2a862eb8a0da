// page_size: kernels with other pages than ktrace knows are refused in plain words.
#include "os/facts/page_size.h"

#include <gtest/gtest.h>

namespace ktrace::os {
namespace {

TEST(PageSize, OtherPagesAreRefused) {
    EXPECT_TRUE(fits_pages(4096));
    for (const std::uint64_t size : {16384U, 65536U}) {
        const auto refused = fits_pages(size);
        ASSERT_FALSE(refused);
        EXPECT_NE(refused.error().message.find(std::to_string(size / 1024) + " KiB"), std::string::npos);
    }
    EXPECT_TRUE(fits_pages(page_size())); // or nothing of ktrace could be tested here
}

} // namespace
} // namespace ktrace::os
