// Attachments and internal breakpoints come and go at one site: the trap is there exactly as long as one needs it.
#include "engine/calls/consumers.h"

#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "instructions.h"

namespace ktrace::engine {
namespace {

class Consumers : public testing::Test {
  protected:
    void SetUp() override {
        code_ = static_cast<unsigned char *>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(code_, MAP_FAILED);
        std::memcpy(code_, test::jump.data(), test::jump.size()); // it needs no slot
        auto memory = target::AddressSpace::open(Pid{::getpid()});
        ASSERT_TRUE(memory);
        space_.memory = std::move(*memory);
        auto site = make_site(space_, VirtAddr{reinterpret_cast<std::uint64_t>(code_)});
        ASSERT_TRUE(site);
        site_ = *site;
    }
    void TearDown() override { ::munmap(code_, size); }

    bool is_planted() const { return test::is_trap(code_); }

    static constexpr std::size_t size = 4096;
    unsigned char *code_ = nullptr;
    Site *site_ = nullptr;
    AddressSpaceState space_;
};

TEST_F(Consumers, KeepTheTrapAsLongAsOneIsOn) {
    Attachment first, second;
    const InternalPurpose purpose;
    InternalBreakpoint internal{&purpose, site_->at};
    enlist(*site_, first);
    enlist(*site_, second);
    enlist(*site_, internal);
    EXPECT_FALSE(is_planted());
    struct {
        const char *what;
        bool first, second, internal, returns, exit; // that is on from now on
    } const rows[] = {
        {"one attachment", true, false, false, false, false},
        {"both", true, true, false, false, false},
        {"the other alone", false, true, false, false, false},
        {"none", false, false, false, false, false},
        {"an internal breakpoint", false, false, true, false, false},
        {"with an attachment", true, false, true, false, false},
        {"the attachment alone", true, false, false, false, false},
        {"calls return", true, false, false, true, false},
        {"only these", false, false, false, true, false},
        {"calls end there", false, false, false, true, true},
        {"only that", false, false, false, false, true},
        {"and nothing", false, false, false, false, false},
    };
    auto turn = [&](auto &consumer, bool on) {
        if (on)
            ASSERT_TRUE(switch_on(space_, *site_, consumer));
        else
            switch_off(space_, *site_, consumer);
    };
    for (const auto &row : rows) {
        SCOPED_TRACE(row.what);
        site_->exit = row.exit;
        if (row.returns) keep_for_returns(space_, *site_);
        turn(first, row.first);
        turn(second, row.second);
        turn(internal, row.internal);
        if (!row.returns) drop_return_site(space_, *site_);
        EXPECT_EQ(is_planted(), row.first || row.second || row.internal || row.returns || row.exit);
        EXPECT_EQ(space_.return_sites, row.returns ? 1U : 0U);
    }
}

TEST_F(Consumers, CountReturnProbesThatAreOn) {
    Attachment entry, ret;
    entry.kind = Attachment::Kind::entry;
    ret.kind = Attachment::Kind::ret;
    enlist(*site_, entry);
    enlist(*site_, ret);
    ASSERT_TRUE(switch_on(space_, *site_, entry));
    EXPECT_EQ(space_.return_probes, 0U);
    ASSERT_TRUE(switch_on(space_, *site_, ret));
    ASSERT_TRUE(switch_on(space_, *site_, ret)); // it is on already
    EXPECT_EQ(space_.return_probes, 1U);
    switch_off(space_, *site_, ret);
    switch_off(space_, *site_, ret);
    EXPECT_EQ(space_.return_probes, 0U);
    EXPECT_TRUE(is_planted());
}

TEST_F(Consumers, StayInTheirPlacesWhileATaskIsInTheMiddle) {
    Engine engine;
    Attachment first, second;
    enlist(*site_, first);
    enlist(*site_, second);
    ASSERT_TRUE(switch_on(space_, *site_, first));
    Task &task = engine.tasks[7];
    task.step.site = site_;
    task.step.post.add(1);
    dismiss(space_, *site_, first);
    EXPECT_TRUE(first.dismissed);
    EXPECT_FALSE(is_planted());
    EXPECT_FALSE(remove_from_site(*site_, first, sites_in_use(engine)));
    EXPECT_EQ(site_->attachments, (std::vector{&first, &second}));
    task.step.post = {};
    EXPECT_TRUE(remove_from_site(*site_, first, sites_in_use(engine)));
    EXPECT_EQ(site_->attachments, std::vector{&second});
}

} // namespace
} // namespace ktrace::engine
