// Sites as they are planned in a process that runs meanwhile: this one.
#include "engine/space/address_space_state.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

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
    void write(std::array<unsigned char, 4> bytes) { std::memcpy(code_, bytes.data(), bytes.size()); }
    Site *site() {
        auto made = make_site(space_, address());
        return made ? *made : nullptr;
    }

    static constexpr std::size_t size = 4096;
    static constexpr std::array<unsigned char, 4> subtract = {0x48, 0x83, 0xec, 0x08}; // sub $8, %rsp
    static constexpr std::array<unsigned char, 4> trap = {0xcc};
    void *code_ = MAP_FAILED;
    AddressSpaceState space_;
};

TEST_F(PlannedCode, IsWhatIsThereWhenItIsPlannedLast) {
    Site *before = site(); // zeros: of what has taken the place of a library for a moment
    ASSERT_TRUE(before);
    EXPECT_EQ(before->plan.length, 2);
    write(subtract);
    EXPECT_EQ(site(), before);
    EXPECT_EQ(before->plan.length, 4);
}

TEST_F(PlannedCode, StaysAsItIsWhereASiteHasProbes) {
    write(subtract);
    Site *made = site();
    ASSERT_TRUE(made);
    Attachment attachment;
    made->attachments.push_back(&attachment);
    write({});
    EXPECT_EQ(site(), made);
    EXPECT_EQ(made->plan.length, 4);
}

TEST_F(PlannedCode, IsRefusedWhereItHasBecomeATrap) {
    ASSERT_TRUE(site());
    write(trap);
    auto again = make_site(space_, address());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().kind, Error::Kind::refused);
}

} // namespace
} // namespace ktrace::engine
