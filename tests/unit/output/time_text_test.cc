// Times: their digits and units, and those that are not known.
#include "output/time_text.h"

#include <gtest/gtest.h>

#include "program/run/duration.h"

namespace ktrace::output {
namespace {

constexpr TimeStyle in_event = event_style(false), in_table = table_style(false), exact = event_style(true),
                    exact_in_table = table_style(true);

TEST(TimeText, HasAFewDigitsAndAUnit) {
    const std::tuple<double, const char *, const char *> rows[] = {
        {0, "0 ns", "0ns"},
        {842, "842 ns", "842ns"},
        {999.6, "1.000 us", "1.00us"},
        {1234, "1.234 us", "1.23us"},
        {12'300, "12.30 us", "12.3us"},
        {123'456, "123.5 us", "123us"},
        {999'949, "999.9 us", "1.00ms"},
        {999'951, "1.000 ms", "1.00ms"},
        {51'800'000, "51.80 ms", "51.8ms"},
        {75e9, "75.00 s", "75.0s"},
        {1234e9, "1234 s", "1234s"},
    };
    for (const auto &[ns, event, table] : rows) {
        EXPECT_EQ(time_text(ns, in_event), event);
        EXPECT_EQ(time_text(ns, in_table), table);
    }
    EXPECT_EQ(time_text(10e9, summary_style), "10.0 s");
    EXPECT_EQ(time_text(1'234'567, exact), "1234567 ns");
    EXPECT_EQ(time_text(1'234'567, exact_in_table), "1234567ns");
}

TEST(TimeText, BoundsHaveNoZerosBehindThem) {
    EXPECT_EQ(short_time_text(1000, in_event), "1 us");
    EXPECT_EQ(short_time_text(500, in_table), "500ns");
    EXPECT_EQ(short_time_text(822'400, in_table), "822us");
    EXPECT_EQ(short_time_text(1'200'000, in_table), "1.2ms");
    EXPECT_EQ(short_time_text(200'000, in_table), "200us");
}

TEST(TimeText, SaysHowWellATimeIsKnown) {
    EXPECT_EQ(measured_text({12'000, 1000, false}, in_event), "12.00 us");
    EXPECT_EQ(measured_text({999, 1000, false}, in_event), "<1 us");
    EXPECT_EQ(measured_text({1000, 1000, false}, in_event), "~1.000 us");
    EXPECT_EQ(measured_text({3999, 1000, false}, in_event), "~3.999 us");
    EXPECT_EQ(measured_text({4000, 1000, false}, in_event), "4.000 us");
    EXPECT_EQ(measured_text({4000, 1000, true}, in_event), "~4.000 us");
    EXPECT_EQ(measured_text({4000, 0, false}, in_event), "~4.000 us");
}

TEST(TimeErrors, AreRoundedUp) {
    using program::round_error;
    EXPECT_EQ(round_error(0), 0U);
    EXPECT_EQ(round_error(0.3), 1U);
    EXPECT_EQ(round_error(1.1), 2U);
    EXPECT_EQ(round_error(5), 5U);
    EXPECT_EQ(round_error(681), 1000U);
    EXPECT_EQ(round_error(20'587), 50'000U);
}

} // namespace
} // namespace ktrace::output
