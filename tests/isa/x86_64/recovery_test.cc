// The handler that carries a process over our traps when ktrace was killed: a copy of it, called as the kernel would,
// must leave the registers and the memory that emulation leaves.
#if defined(__x86_64__)

#include <csignal>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "arch/recovery.h"
#include "hex.h"
#include "x86_64/native.h"
#include "x86_64/x86_64.h"

namespace ktrace::arch::test {
namespace {

using Handler = void (*)(int, siginfo_t *, ucontext_t *);

constexpr std::size_t page = ktrace_recovery_page, capacity = 8;

/// The test's own memory, as far as it is `area`.
class OwnMemory final : public Memory {
  public:
    explicit OwnMemory(std::span<std::byte> area) : area_(area) {}
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        if (!holds(at, into.size())) return 0;
        std::memcpy(into.data(), reinterpret_cast<const void *>(at.value), into.size());
        return into.size();
    }
    bool write(VirtAddr at, std::span<const std::byte> bytes) override {
        if (!holds(at, bytes.size())) return false;
        std::memcpy(reinterpret_cast<void *>(at.value), bytes.data(), bytes.size());
        return true;
    }

  private:
    bool holds(VirtAddr at, std::size_t size) const {
        auto start = reinterpret_cast<std::uint64_t>(area_.data());
        return at.value >= start && at.value + size <= start + area_.size();
    }
    std::span<std::byte> area_;
};

/// The number of each register in gregset_t, beside its place in Registers.
struct Pair {
    int greg;
    decltype(X86_64Registers::ax) X86_64Registers::*member;
};
constexpr Pair pairs[] = {
    {REG_RAX, &X86_64Registers::ax},  {REG_RBX, &X86_64Registers::bx},  {REG_RCX, &X86_64Registers::cx},
    {REG_RDX, &X86_64Registers::dx},  {REG_RSI, &X86_64Registers::si},  {REG_RDI, &X86_64Registers::di},
    {REG_RBP, &X86_64Registers::bp},  {REG_RSP, &X86_64Registers::sp},  {REG_R8, &X86_64Registers::r8},
    {REG_R9, &X86_64Registers::r9},   {REG_R10, &X86_64Registers::r10}, {REG_R11, &X86_64Registers::r11},
    {REG_R12, &X86_64Registers::r12}, {REG_R13, &X86_64Registers::r13}, {REG_R14, &X86_64Registers::r14},
    {REG_R15, &X86_64Registers::r15}, {REG_RIP, &X86_64Registers::ip},  {REG_EFL, &X86_64Registers::flags},
};

class Recovery : public testing::Test {
  protected:
    void SetUp() override {
        page_ = static_cast<std::byte *>(
            ::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(page_, MAP_FAILED);
        RecoveryCode code = X86_64Native::recovery_code();
        std::size_t at = (sizeof(ktrace_recovery_header) + 15) & ~std::size_t{15};
        ASSERT_LE(at + code.bytes.size(), page);
        std::memcpy(page_ + at, code.bytes.data(), code.bytes.size());
        handler_ = reinterpret_cast<Handler>(page_ + at + code.handler);
        header().tables = 1;
        header().table[0] = {reinterpret_cast<std::uint64_t>(page_ + page), capacity};
        site_ = page_ + 2 * page;
        area_ = std::span(page_ + 3 * page, page);
    }
    void TearDown() override { ::munmap(page_, 4 * page); }

    ktrace_recovery_header &header() { return *reinterpret_cast<ktrace_recovery_header *>(page_); }

    /// Plants a trap over `code` and enters it into the table.
    X86_64Plan plant(const std::vector<std::byte> &code) {
        VirtAddr at{reinterpret_cast<std::uint64_t>(site_)}, slot = at + 0x800;
        std::memcpy(site_, code.data(), code.size());
        auto plan = X86_64::plan(code, at);
        Placement placed;
        if (plan.method != Method::emulate) placed = X86_64::place(plan, at, slot);
        auto *table = reinterpret_cast<ktrace_recovery_entry *>(page_ + page);
        std::memset(table, 0, page);
        table[ktrace_recovery_hash(at.value, capacity)] = X86_64::recovery_entry(plan, placed, at, slot);
        auto trap = X86_64::trap_bytes();
        std::memcpy(site_, trap.data(), trap.size());
        return plan;
    }

    /// The registers behind the trap at the site, with pointers into the area.
    X86_64Registers registers(std::mt19937_64 &random) {
        X86_64Registers made{};
        for (const Pair &pair : pairs) {
            std::uint64_t within = random() % (page / 2) & ~std::uint64_t{7};
            made.*pair.member = reinterpret_cast<std::uint64_t>(area_.data()) + page / 4 + within;
        }
        made.flags = random() & 0x8d5;
        made.ip = reinterpret_cast<std::uint64_t>(site_) + 1;
        return made;
    }

    X86_64Registers handle(const X86_64Registers &before, siginfo_t info) {
        ucontext_t context{};
        std::memcpy(&context.uc_sigmask, &mask_, sizeof mask_);
        for (const Pair &pair : pairs) context.uc_mcontext.gregs[pair.greg] = static_cast<greg_t>(before.*pair.member);
        handler_(SIGTRAP, &info, &context);
        std::memcpy(&mask_, &context.uc_sigmask, sizeof mask_);
        X86_64Registers after = before;
        for (const Pair &pair : pairs)
            after.*pair.member = static_cast<std::uint64_t>(context.uc_mcontext.gregs[pair.greg]);
        return after;
    }

    static siginfo_t trap_info(int code = SI_KERNEL) {
        siginfo_t info{};
        info.si_signo = SIGTRAP;
        info.si_code = code;
        return info;
    }

    /// This thread's own mask, as kept for a step.
    void keep_mask(std::uint64_t tid, std::uint64_t mask) {
        masks_.assign(ktrace_recovery_most_masks, ktrace_recovery_mask{});
        masks_[tid % ktrace_recovery_most_masks] = {tid, mask};
        header().masks = reinterpret_cast<std::uint64_t>(masks_.data());
    }

    std::vector<ktrace_recovery_mask> masks_;
    std::uint64_t mask_ = 0; // of the interrupted thread
    std::byte *page_ = nullptr, *site_ = nullptr;
    std::span<std::byte> area_;
    Handler handler_ = nullptr;
};

std::vector<std::string> transfers() {
    std::vector<std::string> all = {"eb10",         "e900010000", "e800010000", "ffe0",     "41ffd3", "ff6010",
                                    "ff1590000000", "ff642408",   "41ff5208",   "e2f0",     "e1f0",   "e0f0",
                                    "e320",         "67e2f0",     "67e320",     "ff542410", "ffd4"};
    for (int condition = 0; condition < 16; condition++) {
        char text[16];
        std::snprintf(text, sizeof text, "%02x20", 0x70 + condition);
        all.emplace_back(text);
        std::snprintf(text, sizeof text, "0f%02x00020000", 0x80 + condition);
        all.emplace_back(text);
    }
    return all;
}

TEST_F(Recovery, TransfersAreDoneAsEmulationDoesThem) {
    std::mt19937_64 random(42);
    OwnMemory memory(std::span(page_, 4 * page));
    for (const std::string &text : transfers()) {
        auto plan = plant(ktrace::test::hex(text));
        ASSERT_EQ(plan.method, Method::emulate) << text;
        for (int round = 0; round < 40; round++) {
            for (std::byte &byte : area_) byte = static_cast<std::byte>(random());
            X86_64Registers before = registers(random);
            if (round % 3 == 0) before.cx = static_cast<std::uint64_t>(round % 2); // loops that end
            std::vector<std::byte> at_start(area_.begin(), area_.end());

            X86_64Registers emulated = before;
            emulated.ip = reinterpret_cast<std::uint64_t>(site_);
            auto done = X86_64::emulate(plan, VirtAddr{emulated.ip}, emulated, memory);
            if (done.outcome == Emulated::Outcome::fault) continue; // an address that points anywhere
            std::vector<std::byte> left(area_.begin(), area_.end());

            std::copy(at_start.begin(), at_start.end(), area_.begin());
            X86_64Registers handled = handle(before, trap_info());
            for (const Pair &pair : pairs) EXPECT_EQ(handled.*pair.member, emulated.*pair.member) << text;
            EXPECT_TRUE(std::equal(left.begin(), left.end(), area_.begin())) << text;
        }
    }
}

TEST_F(Recovery, OtherInstructionsGoOnInTheirSlots) {
    std::mt19937_64 random(7);
    auto plan = plant(ktrace::test::hex("55")); // push %rbp
    ASSERT_NE(plan.method, Method::emulate);
    X86_64Registers before = registers(random);
    auto expected = before;
    expected.ip = reinterpret_cast<std::uint64_t>(site_) + 0x800;
    X86_64Registers handled = handle(before, trap_info());
    for (const Pair &pair : pairs) EXPECT_EQ(handled.*pair.member, expected.*pair.member);
}

TEST_F(Recovery, ATrapThatWasTakenOutIsRunAgain) {
    std::mt19937_64 random(7);
    plant(ktrace::test::hex("55"));
    *site_ = std::byte{0x55};
    X86_64Registers before = registers(random);
    EXPECT_EQ(handle(before, trap_info()).ip, reinterpret_cast<std::uint64_t>(site_));
}

/// The byte at the site once the handler was called for its trap, in a child of this process: with a filter that allows
/// all, or under a tracer, if that is asked for.
enum class In { child, filter, trace };

std::byte first_byte_in_child(In in, const std::byte *site, const std::function<void()> &handle) {
    const pid_t child = ::fork();
    if (child == 0) {
        sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        const sock_fprog filter{1, &all};
        bool is_ready = in != In::filter || (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                                             ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
        if (in == In::trace) is_ready = ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0;
        if (is_ready) handle();
        ::_exit(is_ready ? std::to_integer<int>(*site) : 0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return static_cast<std::byte>(WEXITSTATUS(status));
}

TEST_F(Recovery, ATrapIsTakenOutForGoodWhereThatHarmsNobody) {
    constexpr std::byte trap{0xcc}, instruction{0x55};
    std::mt19937_64 random(7);
    struct Row {
        const char *what;
        In in;
        std::uint64_t filters; // as noted in the page
        bool is_of_jump;
        std::byte then;
    };
    for (const Row &row :
         {Row{"no filter, no tracer", In::child, 1, false, instruction},
          Row{"a page of a process with a filter", In::child, 2, false, trap},
          Row{"a page that does not tell", In::child, 0, false, trap},
          Row{"a filter has come since", In::filter, 1, false, trap}, Row{"somebody traces", In::trace, 1, false, trap},
          Row{"a jump's bytes lie behind it", In::child, 1, true, trap}}) {
        plant(ktrace::test::hex("55"));
        header().filters = row.filters;
        auto *table = reinterpret_cast<ktrace_recovery_entry *>(page_ + page);
        const auto at = reinterpret_cast<std::uint64_t>(site_);
        table[ktrace_recovery_hash(at, capacity)].is_of_jump = row.is_of_jump ? 1 : 0;
        const X86_64Registers before = registers(random);
        const std::byte now = first_byte_in_child(row.in, site_, [&] {
            const bool is_out = row.then == instruction;
            const std::uint64_t ip = handle(before, trap_info()).ip;
            if (ip != (is_out ? at : at + 0x800)) *site_ = std::byte{0xff}; // neither
        });
        EXPECT_EQ(now, row.then) << row.what;
    }
}

TEST_F(Recovery, StepsAndHardwareBreakpointsAreDropped) {
    std::mt19937_64 random(7);
    plant(ktrace::test::hex("55"));
    for (int code : {TRAP_TRACE, TRAP_HWBKPT}) {
        X86_64Registers before = registers(random);
        before.flags |= 0x100;
        X86_64Registers handled = handle(before, trap_info(code));
        EXPECT_EQ(handled.ip, before.ip);
        EXPECT_EQ(handled.flags, before.flags & ~std::uint64_t{0x100});
    }
}

TEST_F(Recovery, WhatTheTracerHasMovedIsLeftWhereItIs) {
    std::mt19937_64 random(7);
    plant(ktrace::test::hex("55"));
    X86_64Registers before = registers(random);
    siginfo_t info = trap_info();
    info.si_errno = ktrace_recovery_moved;
    info.si_addr = reinterpret_cast<void *>(before.ip);
    EXPECT_EQ(handle(before, info).ip, before.ip);
    before.ip += 0x40; // served: no trap of ours before it
    EXPECT_EQ(handle(before, trap_info()).ip, before.ip);
}

TEST_F(Recovery, AThreadThatWasSteppedGetsItsMaskBack) {
    const std::uint64_t own = 1U << (SIGUSR1 - 1), stepped = ktrace_recovery_blocked(own);
    EXPECT_EQ(stepped & 1U << (SIGTRAP - 1), 0U);
    const auto tid = static_cast<std::uint64_t>(::syscall(SYS_gettid));
    std::mt19937_64 random(7);
    plant(ktrace::test::hex("55"));
    const X86_64Registers at_trap = registers(random);
    X86_64Registers moved = at_trap;
    moved.ip += 0x40;
    struct Row {
        const char *what;
        std::uint64_t kept_for, kept, now;
        X86_64Registers where;
        int code;
        std::uint64_t then;
    };
    for (const Row &row : {Row{"at the step's end", tid, own, stepped, at_trap, TRAP_TRACE, own},
                           Row{"before the step, moved on already", tid, own, stepped, moved, SI_KERNEL, own},
                           Row{"at a trap that nobody has seen", tid, own, stepped, at_trap, SI_KERNEL, stepped},
                           Row{"one that has set another mask", tid, own, own | 1, moved, SI_KERNEL, own | 1},
                           Row{"one that blocks none", tid, 0, stepped, moved, SI_KERNEL, 0},
                           Row{"one that blocks as much itself", tid, stepped, stepped, moved, SI_KERNEL, stepped},
                           Row{"another thread", tid + 1, own, stepped, moved, SI_KERNEL, stepped}}) {
        keep_mask(row.kept_for, row.kept);
        mask_ = row.now;
        handle(row.where, trap_info(row.code));
        EXPECT_EQ(mask_, row.then) << row.what;
    }
    header().masks = 0; // a page of an older ktrace
    mask_ = stepped;
    handle(moved, trap_info());
    EXPECT_EQ(mask_, stepped);
}

TEST_F(Recovery, AnIgnoredSignalThatIsSentStaysIgnored) {
    std::mt19937_64 random(7);
    header().before.handler = 1; // SIG_IGN
    X86_64Registers before = registers(random);
    EXPECT_EQ(handle(before, trap_info(SI_USER)).ip, before.ip);
}

TEST_F(Recovery, WhatStandsInForAnotherSignalIsDropped) {
    std::mt19937_64 random(7);
    X86_64Registers before = registers(random);
    header().retold = before.sp;
    EXPECT_EQ(handle(before, trap_info(SI_USER)).ip, before.ip); // else it would have ended this process
}

} // namespace
} // namespace ktrace::arch::test

#endif
