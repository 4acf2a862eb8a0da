// The kernel's records of context switches: what they say of a stretch of time, from their bytes; and how many tasks
// are recorded at once.
#include "os/facts/sched_records.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <unistd.h>

namespace ktrace::os {
namespace {

constexpr std::size_t ring_size = 256; // 16 switches

/// A ring as the kernel writes it.
class Ring {
  public:
    Ring &in(std::uint64_t ns) { return record(PERF_RECORD_SWITCH, 0, {ns}); }
    Ring &out(std::uint64_t ns) { return record(PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, {ns}); }
    Ring &lost(std::uint64_t ns) { return record(PERF_RECORD_LOST, 0, {1, 3, ns}); }
    Ring &other(std::uint64_t ns) { return record(PERF_RECORD_THROTTLE, 0, {0, 0, ns}); }
    Ring &record(std::uint32_t type, std::uint16_t misc, const std::vector<std::uint64_t> &words,
                 std::size_t more = 0) {
        perf_event_header header{type, misc, static_cast<std::uint16_t>(sizeof header + words.size() * 8 + more)};
        write(&header, sizeof header);
        for (std::uint64_t word : words) write(&word, sizeof word);
        return *this;
    }
    /// The records since the last look.
    Presence look(Presence before = {}) {
        read_switches(bytes, seen, end, before);
        seen = end;
        return before;
    }

    std::vector<std::byte> bytes = std::vector<std::byte>(ring_size);
    std::uint64_t end = 0, seen = 0;

  private:
    void write(const void *from, std::size_t size) {
        std::memcpy(bytes.data() + end % ring_size, from, size);
        end += size;
    }
};

TEST(SchedRecords, FromTheFirstComingToTheLastLeaving) {
    Presence seen = Ring().in(100).out(150).in(900).out(1000).look();
    EXPECT_TRUE(seen.is_known());
    EXPECT_EQ(seen.came_ns, 100U);
    EXPECT_EQ(seen.left_ns, 1000U);
}

TEST(SchedRecords, NothingIsKnownOfATaskThatDidNotComeOrHasNotLeft) {
    EXPECT_FALSE(Ring().look().is_known());
    EXPECT_FALSE(Ring().in(100).look().is_known());
    EXPECT_FALSE(Ring().in(100).out(150).in(200).look().is_known());
}

TEST(SchedRecords, AStretchMayBeReadInParts) {
    Ring ring;
    Presence first = ring.in(100).look();
    Presence both = ring.out(300).look(first);
    EXPECT_TRUE(both.is_known());
    EXPECT_EQ(both.came_ns, 100U);
    EXPECT_EQ(both.left_ns, 300U);
}

TEST(SchedRecords, ALeavingWithoutAComingMeansThatRecordsAreMissing) {
    EXPECT_TRUE(Ring().out(100).look().lost);
    EXPECT_FALSE(Ring().out(100).in(200).out(300).look().is_known());
}

TEST(SchedRecords, ALossBeforeTheTaskCameIsOfAnEarlierStretch) {
    EXPECT_TRUE(Ring().lost(90).in(100).out(200).look().is_known());
    EXPECT_FALSE(Ring().in(100).lost(150).out(200).look().is_known());
}

TEST(SchedRecords, WhereTheRingIsFullTheLastRecordsMayBeMissing) {
    Ring ring;
    for (unsigned i = 0; i < 6; i++) ring.in(100 + i).out(200 + i);
    EXPECT_TRUE(ring.look().is_known()); // room for four more
    for (unsigned i = 0; i < 7; i++) ring.in(100 + i).out(200 + i);
    EXPECT_TRUE(ring.look().lost);
}

TEST(SchedRecords, RecordsGoOnAtTheStartOfTheRing) {
    Ring ring;
    for (unsigned i = 0; i < 40; i++) {
        Presence seen = ring.in(1000 + i).out(2000 + i).look();
        ASSERT_TRUE(seen.is_known());
        ASSERT_EQ(seen.came_ns, 1000U + i);
        ASSERT_EQ(seen.left_ns, 2000U + i);
    }
}

TEST(SchedRecords, RecordsOfOtherKindsArePassedOver) {
    EXPECT_EQ(Ring().other(1).in(100).other(2).out(200).look().left_ns, 200U);
}

TEST(SchedRecords, ARecordThatCannotBeEndsTheLook) {
    Ring ring;
    ring.in(100).out(200).record(PERF_RECORD_SWITCH, 0, {}, 4096);
    EXPECT_TRUE(ring.look().lost);
    Ring empty;
    empty.in(100).out(200);
    empty.end += 16; // zeros
    EXPECT_TRUE(empty.look().lost);
}

TEST(SchedRecords, SoManyTasksAreRecordedAtOnce) {
    std::vector<std::unique_ptr<SchedRecords>> all;
    for (std::size_t i = 0; i < SchedRecords::most; i++) {
        all.push_back(SchedRecords::open(Tid{::gettid()}));
        if (!all.back()) GTEST_SKIP() << "the kernel refuses";
    }
    EXPECT_EQ(SchedRecords::open(Tid{::gettid()}), nullptr);
    all.pop_back();
    EXPECT_NE(SchedRecords::open(Tid{::gettid()}), nullptr);
}

} // namespace
} // namespace ktrace::os
