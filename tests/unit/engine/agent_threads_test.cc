#include "engine/space/agent_threads.h"

#include "agent/layout.h"
#include "engine/space/returns.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

namespace ktrace::engine {
namespace {

constexpr VirtAddr address{0x700000000000};
constexpr std::uint64_t pointer = 0x7ffff7d8a740;
constexpr VirtAddr low{0x7ffff7000000}, high{0x7ffff7800000}; // of the stack

class Threads : public ::testing::Test {
  protected:
    void SetUp() override {
        Fd file(::memfd_create("threads", MFD_CLOEXEC));
        ASSERT_EQ(::ftruncate(file.get(), AgentThreads::size), 0);
        Fd other(::dup(file.get()));
        auto made = AgentThreads::map(std::move(file), address);
        ASSERT_TRUE(made);
        threads_ = *made;
        void *at = ::mmap(nullptr, AgentThreads::size, PROT_READ, MAP_SHARED, other.get(), 0);
        ASSERT_NE(at, MAP_FAILED);
        shared_ = static_cast<const agent::Threads *>(at);
    }
    void TearDown() override { ::munmap(const_cast<agent::Threads *>(shared_), AgentThreads::size); }

    /// As the agent finds it; 0: it does not.
    std::uint64_t found(std::uint64_t thread_pointer) const {
        std::size_t at = agent::key_of(thread_pointer);
        for (std::size_t i = 0; i < agent::longest_search; i++, at = (at + 1) % agent::keys)
            if (shared_->key[at].thread_pointer == thread_pointer) return shared_->key[at].thread;
        return 0;
    }

    std::shared_ptr<AgentThreads> threads_;
    const agent::Threads *shared_ = nullptr;
};

TEST_F(Threads, ATaskIsFoundByItsThreadPointer) {
    ASSERT_TRUE(threads_->give(Pid{1}, Tid{11}, pointer, low, high));
    const std::uint64_t at = found(pointer);
    ASSERT_GE(at, address.value + AgentThreads::first_part);
    EXPECT_LT(at, address.value + AgentThreads::size);
    EXPECT_FALSE(threads_->give(Pid{1}, Tid{11}, pointer, low, high)) << "it has one";
    threads_->take_back(Tid{11});
    EXPECT_EQ(found(pointer), 0u);
    EXPECT_EQ(threads_->of(Tid{11}), nullptr);
}

TEST_F(Threads, ItIsShownWhatCanBeReadAndForHowLongToWait) {
    const agent::Range ranges[] = {{0x1000, 0x3000}, {0x5000, 0x6000}};
    for (std::size_t count : {2U, 1U, 0U}) {
        threads_->show_readable(std::span(ranges).first(count), 7);
        const agent::Ranges &shown = shared_->readable[shared_->readable_now & 1];
        ASSERT_EQ(shown.count, count);
        for (std::size_t i = 0; i < count; i++) EXPECT_EQ(shown.range[i].high, ranges[i].high);
        EXPECT_EQ(threads_->readable().size(), count);
    }
    EXPECT_EQ(threads_->listed_at_ns(), 7u);
    threads_->show_alive();
    EXPECT_EQ(shared_->longest_ns, agent::longest_silence_ns);
    threads_->wait_for_ever();
    threads_->show_alive();
    EXPECT_EQ(shared_->longest_ns, ~std::uint64_t{0});
}

TEST_F(Threads, ThoseThatHaveNoneGetNoPlace) {
    EXPECT_FALSE(threads_->give(Pid{1}, Tid{11}, 0, low, high));
    EXPECT_FALSE(threads_->give(Pid{1}, Tid{11}, 1, low, high)) << "that of forgotten keys";
}

TEST_F(Threads, ATaskThatBeginsClaimsTheThreadPointerOfOneThatMayLive) {
    ASSERT_TRUE(threads_->give(Pid{1}, Tid{11}, pointer, low, high));
    threads_->claim(Tid{12}, pointer);
    EXPECT_EQ(found(pointer), 0u) << "it would be another one's";
    EXPECT_FALSE(threads_->give(Pid{1}, Tid{12}, pointer, low, high)) << "both may run";
    EXPECT_NE(threads_->of(Tid{11}), nullptr) << "its records are still to be read";
    threads_->take_back(Tid{11});
    EXPECT_TRUE(threads_->give(Pid{1}, Tid{12}, pointer, low, high));
    threads_->claim(Tid{12}, pointer); // its own
    EXPECT_NE(found(pointer), 0u);
}

TEST_F(Threads, AsManyAsThereAreAndThenAgain) {
    const auto limit = static_cast<pid_t>(agent::most_threads);
    pid_t given = 0;
    for (pid_t tid = 1; tid <= limit + 8; tid++)
        if (threads_->give(Pid{1}, Tid{tid}, pointer + static_cast<std::uint64_t>(tid) * 0x1000, low, high)) given++;
    EXPECT_LE(given, limit);
    EXPECT_GE(given, limit - 2) << "a key has longest_search places";
    const pid_t first = threads_->all().begin()->first;
    threads_->take_back(Tid{first});
    EXPECT_TRUE(threads_->give(Pid{1}, Tid{1000}, pointer + static_cast<std::uint64_t>(first) * 0x1000, low, high));
}

/// As the agent looks it up.
bool is_known(const agent::Threads &shared, std::uint64_t at_return) {
    std::size_t at = agent::hash(at_return) % agent::returns;
    for (std::size_t i = 0; i < agent::longest_search; i++, at = (at + 1) % agent::returns) {
        if (shared.return_to[at] == at_return) return true;
        if (shared.return_to[at] == 0) return false;
    }
    return false;
}

TEST_F(Threads, ReturnAddressesAreKnownUntilTheyAreForgotten) {
    std::vector<VirtAddr> all;
    for (std::uint64_t i = 0; i < 8192; i++) all.push_back(VirtAddr{0x555555550000 + i * 7});
    for (const VirtAddr each : all) threads_->know_return(each);
    std::size_t known = 0;
    for (const VirtAddr each : all) known += is_known(*shared_, each.value);
    EXPECT_EQ(known, all.size());
    for (std::size_t i = 0; i < all.size(); i += 2) threads_->forget_return(all[i]);
    for (std::size_t i = 0; i < all.size(); i++)
        EXPECT_EQ(is_known(*shared_, all[i].value), i % 2 == 1) << "those that lie behind a forgotten one, too";
    threads_->know_return(all[0]);
    EXPECT_TRUE(is_known(*shared_, all[0].value));
}

TEST_F(Threads, ACallOfKtracesShowsAtItsPlaceUntilItHasEnded) {
    const VirtAddr place{0x7ffff7000100};
    const auto shown = [&] { return shared_->in_ktrace[agent::place_of(place.value)]; };
    Returns returns;
    Task task;
    Instance &before = returns.begin(task, {place, VirtAddr{1}});
    EXPECT_EQ(shown(), 0u);
    returns.show_to(*threads_);
    EXPECT_EQ(shown(), 1u);
    Instance &tail_called = returns.begin(task, {place, VirtAddr{1}});
    EXPECT_EQ(shown(), 2u);
    returns.end(tail_called, &task);
    returns.end(before, &task);
    EXPECT_EQ(shown(), 0u);
}

TEST_F(Threads, CallsAreThoseThatTheThreadHasNoted) {
    ASSERT_TRUE(threads_->give(Pid{1}, Tid{11}, pointer, low, high));
    AgentThreads::Place &place = *threads_->of(Tid{11});
    EXPECT_TRUE(threads_->calls_of(place).empty());
    for (std::uint64_t i = 0; i < 3; i++) place.thread->call[i].place = high.value - i * 64;
    place.thread->state = agent::state_of(agent::first_tail, 3);
    ASSERT_EQ(threads_->calls_of(place).size(), 4u) << "with the entry behind them";
    EXPECT_EQ(threads_->calls_of(place)[2].place, high.value - 128);
    AgentThreads::keep_calls(place, 1);
    EXPECT_EQ(threads_->calls_of(place).size(), 2u);
    EXPECT_EQ(agent::tail_of(place.thread->state), agent::first_tail);
    place.thread->state = agent::state_of(agent::first_tail, agent::most_calls + 1);
    EXPECT_TRUE(threads_->calls_of(place).empty()) << "the process has written there";
}

TEST_F(Threads, CallsOfAnEarlierGenerationAreNotOfNow) {
    agent::Call call;
    EXPECT_TRUE(threads_->is_of_now(call));
    threads_->forget_all_calls();
    EXPECT_FALSE(threads_->is_of_now(call));
    call.generation = shared_->generation;
    EXPECT_TRUE(threads_->is_of_now(call));
}

} // namespace
} // namespace ktrace::engine
