// Which task of a process is stopped, where any one will do.
#include "tracees/choice.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace ktrace::tracees {
namespace {

using os::Interrupted;

Candidate candidate(int filters, Interrupted then, bool sleeps_deeply = false) {
    return {filters, then, sleeps_deeply, Tid{}};
}

TEST(Choice, PrefersWhatIsDisturbedLeast) {
    const std::vector<Candidate> in_order = {
        candidate(0, Interrupted::runs),
        candidate(0, Interrupted::restarted),
        candidate(0, Interrupted::by_hand),
        candidate(0, Interrupted::restarted, true), // it stops when something else has happened
        candidate(0, Interrupted::cut_short),
        candidate(0, Interrupted::cut_short, true),
        candidate(1, Interrupted::runs), // a filter may end it for a call of ours
        candidate(1, Interrupted::cut_short),
    };
    for (std::size_t i = 1; i < in_order.size(); i++) EXPECT_LT(in_order[i - 1], in_order[i]) << i;
}

TEST(Choice, WaitsForCallsThatWouldBeCutShort) {
    EXPECT_TRUE(candidate(0, Interrupted::cut_short).is_last_choice());
    EXPECT_FALSE(candidate(0, Interrupted::by_hand).is_last_choice());
    EXPECT_FALSE(candidate(3, Interrupted::runs).is_last_choice());
}

} // namespace
} // namespace ktrace::tracees
