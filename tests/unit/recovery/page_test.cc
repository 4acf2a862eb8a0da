#include "recovery/page.h"

#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recovery/remains.h"
#include "target/address_space.h"

namespace ktrace::recovery {
namespace {

/// A page that another ktrace has left in this very process.
class LeftPage : public ::testing::Test {
  protected:
    void SetUp() override {
        page_ = ::mmap(nullptr, ktrace_recovery_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(page_, MAP_FAILED);
        auto space = target::AddressSpace::open(Pid{::getpid()});
        ASSERT_TRUE(space);
        space_ = std::move(*space);
        std::memcpy(header().magic, KTRACE_RECOVERY_MAGIC, sizeof header().magic);
        header().abi = ktrace_recovery_abi;
        header().header_size = sizeof header();
        header().entry_size = sizeof(ktrace_recovery_entry);
        header().installed = ktrace_recovery_ours;
        header().size = ktrace_recovery_page;
        header().tracer = 1;
        ASSERT_EQ(::mprotect(page_, ktrace_recovery_page, PROT_READ | PROT_EXEC), 0);
    }
    void TearDown() override { ::munmap(page_, ktrace_recovery_page); }

    ktrace_recovery_header &header() { return *static_cast<ktrace_recovery_header *>(page_); }
    void set_retold(std::uint64_t sp) {
        ASSERT_TRUE(space_->write_own(address() + static_cast<std::int64_t>(offsetof(ktrace_recovery_header, retold)),
                                      std::as_bytes(std::span(&sp, 1))));
    }
    VirtAddr address() { return VirtAddr{reinterpret_cast<std::uint64_t>(page_)}; }
    Page adopted() {
        auto left = read_left(Pid{::getpid()}, address());
        EXPECT_TRUE(left);
        return left ? Page::adopt(left->page, left->header) : Page();
    }

    void *page_ = MAP_FAILED;
    std::unique_ptr<target::AddressSpace> space_;
};

TEST_F(LeftPage, KeepsWhomItsLastKtraceWasTellingOfASignal) {
    set_retold(0x7f0000001000);
    Page page = adopted();
    page.add_arena(*space_, VirtAddr{0x10000}, 0x1000); // writes the header
    EXPECT_EQ(header().retold, 0x7f0000001000);
    page.retell(*space_, VirtAddr{0x7f0000002000});
    EXPECT_EQ(header().retold, 0x7f0000001000);
    page.retell(*space_, VirtAddr{});
    EXPECT_EQ(header().retold, 0x7f0000001000);
}

TEST_F(LeftPage, CountsTheMappingsThatItsTablesAreInAsTheKernelShowsThem) {
    constexpr std::size_t size = std::size_t{3} * ktrace_recovery_page;
    auto *room = static_cast<char *>(::mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(room, MAP_FAILED);
    ASSERT_EQ(::mprotect(room + ktrace_recovery_page, ktrace_recovery_page, PROT_NONE), 0);
    auto tell = [&](std::uint32_t tables) {
        ASSERT_EQ(::mprotect(page_, ktrace_recovery_page, PROT_READ | PROT_WRITE), 0);
        header().tables = tables;
        header().table[0] = {reinterpret_cast<std::uint64_t>(room), 8};
        header().table[1] = {reinterpret_cast<std::uint64_t>(room) + 2048, 8};
        header().table[2] = {reinterpret_cast<std::uint64_t>(room) + std::uint64_t{2} * ktrace_recovery_page, 8};
        ASSERT_EQ(::mprotect(page_, ktrace_recovery_page, PROT_READ | PROT_EXEC), 0);
    };
    auto mappings = [&] {
        auto left = read_left(Pid{::getpid()}, address());
        return left ? left->mappings : 0;
    };
    tell(0);
    const std::size_t alone = mappings();
    EXPECT_EQ(alone, 1);
    tell(2);
    const std::size_t with_neighbours = mappings();
    tell(3);
    EXPECT_EQ(mappings(), with_neighbours + 1);
    ::munmap(room, size);
}

TEST_F(LeftPage, TellsWhomItsNextKtraceTellsOfASignal) {
    Page page = adopted();
    page.retell(*space_, VirtAddr{0x7f0000002000});
    EXPECT_EQ(header().retold, 0x7f0000002000);
    page.retell(*space_, VirtAddr{});
    EXPECT_EQ(header().retold, 0);
}

} // namespace
} // namespace ktrace::recovery
