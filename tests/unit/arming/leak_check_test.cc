// Whether a sanitizer's options turn its search for leaks off.
#include "arming/leak_check.h"

#include <gtest/gtest.h>

namespace ktrace::arming {
namespace {

TEST(LeakCheck, IsTurnedOffByItsOptionAlone) {
    EXPECT_FALSE(turns_leak_check_off(""));
    EXPECT_FALSE(turns_leak_check_off("ASAN_OPTIONS=abort_on_error=1"));
    EXPECT_TRUE(turns_leak_check_off("ASAN_OPTIONS=abort_on_error=1:detect_leaks=0"));
    EXPECT_TRUE(turns_leak_check_off("detect_leaks=false"));
    EXPECT_FALSE(turns_leak_check_off("detect_leaks=1"));
    EXPECT_FALSE(turns_leak_check_off("detect_leaks=0:detect_leaks=1"));
    EXPECT_TRUE(turns_leak_check_off("detect_leaks=1 detect_leaks=0"));
}

} // namespace
} // namespace ktrace::arming
