#include "engine/transparent/signals/earlier.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace ktrace::engine {
namespace {

constexpr int number = 40;

siginfo_t with_value(int value, int signal = number) {
    siginfo_t info{};
    info.si_signo = signal;
    info.si_code = SI_QUEUE;
    info.si_value.sival_int = value;
    return info;
}

siginfo_t by_us() {
    siginfo_t info{};
    info.si_signo = number;
    info.si_code = SI_TKILL;
    info.si_pid = ::getpid();
    return info;
}

int told_at(Earlier &earlier, const siginfo_t &arrived) { return earlier.instead_of(arrived).si_value.sival_int; }

TEST(Earlier, NobodyIsKeptWaiting) {
    Earlier earlier;
    EXPECT_TRUE(earlier.is_empty());
    EXPECT_EQ(told_at(earlier, with_value(7)), 7);
    EXPECT_TRUE(earlier.is_empty());
}

TEST(Earlier, OrderIsThatOfSending) {
    Earlier earlier;
    earlier.add({with_value(1), with_value(2)});
    for (const siginfo_t &info : earlier.missing()) earlier.queued(info);
    EXPECT_TRUE(earlier.missing().empty());
    EXPECT_EQ(told_at(earlier, with_value(3)), 1); // 3 and 4 were in the queue already
    EXPECT_EQ(told_at(earlier, with_value(4)), 2);
    EXPECT_EQ(told_at(earlier, with_value(1)), 3);
    EXPECT_EQ(told_at(earlier, with_value(2)), 4);
    EXPECT_TRUE(earlier.is_empty());
    EXPECT_EQ(told_at(earlier, with_value(5)), 5);
}

TEST(Earlier, StandsInForWhatCannotBeSentAsItWas) {
    Earlier earlier;
    earlier.add({with_value(1)});
    earlier.queued_stand_in(number);
    EXPECT_TRUE(earlier.missing().empty());
    EXPECT_EQ(told_at(earlier, with_value(2)), 1);
    EXPECT_EQ(told_at(earlier, by_us()), 2);
    EXPECT_TRUE(earlier.is_empty());
}

TEST(Earlier, NoneIsLostWhereTheQueueIsFull) {
    Earlier earlier;
    earlier.add({with_value(1)});
    EXPECT_EQ(earlier.missing().size(), 1U);
    EXPECT_EQ(told_at(earlier, with_value(2)), 1);
    ASSERT_EQ(earlier.missing().size(), 1U);
    earlier.queued(earlier.missing()[0]);
    EXPECT_TRUE(earlier.missing().empty());
    EXPECT_EQ(told_at(earlier, with_value(2)), 2);
    EXPECT_TRUE(earlier.is_empty());
}

TEST(Earlier, ComesBeforeThoseThatWaitAlready) {
    Earlier earlier;
    earlier.add({with_value(1)});
    earlier.queued(with_value(1));
    EXPECT_EQ(told_at(earlier, with_value(3)), 1);
    earlier.add({with_value(2)}); // told, and sent again in the next step
    earlier.queued(with_value(2));
    EXPECT_EQ(told_at(earlier, with_value(1)), 2);
    EXPECT_EQ(told_at(earlier, with_value(2)), 3);
    EXPECT_TRUE(earlier.is_empty());
}

TEST(Earlier, EachNumberHasItsOwnOrder) {
    Earlier earlier;
    earlier.add({with_value(1)});
    earlier.queued(with_value(1));
    EXPECT_EQ(told_at(earlier, with_value(9, number + 1)), 9);
    EXPECT_EQ(told_at(earlier, with_value(2)), 1);
    EXPECT_EQ(told_at(earlier, with_value(1)), 2);
    EXPECT_TRUE(earlier.is_empty());
}

} // namespace
} // namespace ktrace::engine
