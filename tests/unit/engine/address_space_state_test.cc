// Sites as they are planned in a process that runs meanwhile: this one.
#include "engine/space/address_space_state.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "instructions.h"

namespace ktrace::engine {
namespace {

class PlannedCode : public ::testing::Test {
  protected:
    void SetUp() override {
        code_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(code_, MAP_FAILED);
        auto space = target::AddressSpace::open(Pid{::getpid()});
        ASSERT_TRUE(space);
        space_.memory = std::move(*space);
    }
    void TearDown() override { ::munmap(code_, size); }

    VirtAddr address() { return VirtAddr{reinterpret_cast<std::uint64_t>(code_)}; }
    void write(const test::Instruction &bytes) { std::memcpy(code_, bytes.data(), bytes.size()); }
    Site *site() {
        auto made = make_site(space_, address());
        return made ? *made : nullptr;
    }

    static constexpr std::size_t size = 4096;
    void *code_ = MAP_FAILED;
    AddressSpaceState space_;
};

TEST_F(PlannedCode, IsWhatIsThereWhenItIsPlannedLast) {
    write(test::jump); // of what has taken the place of a library for a moment
    Site *before = site();
    ASSERT_TRUE(before);
    EXPECT_EQ(before->plan.flow, arch::Flow::jump);
    write(test::subtract);
    EXPECT_EQ(site(), before);
    EXPECT_EQ(before->plan.flow, arch::Flow::next);
}

TEST_F(PlannedCode, StaysAsItIsWhereASiteHasProbes) {
    write(test::subtract);
    Site *made = site();
    ASSERT_TRUE(made);
    Attachment attachment;
    made->attachments.push_back(&attachment);
    write(test::jump);
    EXPECT_EQ(site(), made);
    EXPECT_EQ(made->plan.flow, arch::Flow::next);
}

TEST_F(PlannedCode, IsRefusedWhereItHasBecomeATrap) {
    write(test::jump);
    ASSERT_TRUE(site());
    test::Instruction trap{};
    std::memcpy(trap.data(), arch::Host::trap_bytes().data(), arch::Host::trap_bytes().size());
    write(trap);
    auto again = make_site(space_, address());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().kind, Error::Kind::refused);
}

} // namespace
} // namespace ktrace::engine
