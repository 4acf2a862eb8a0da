// A Stage's child is set up by system calls that the test makes in it through ptrace, with the ISA's own set_syscall.
#include "tests/isa/x86_64/stage.h"

#if defined(__x86_64__)

#include <algorithm>
#include <csignal>
#include <cstring>
#include <elf.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "x86_64/native.h"
#include "x86_64/x86_64.h"

namespace ktrace::test {

namespace {

constexpr std::size_t page = 0x1000, code_size = 0x10000;

std::size_t xsave_image(Tid child, std::span<std::byte> into) {
    iovec part{into.data(), into.size()};
    KT_CHECK(::ptrace(PTRACE_GETREGSET, child.value, NT_X86_XSTATE, &part) == 0);
    return part.iov_len;
}

} // namespace

std::uint64_t Random::next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

Stage::Stage() {
    constexpr int text = PROT_READ | PROT_EXEC, variable = PROT_READ | PROT_WRITE;
    regions_[code_region] = {site - code_size / 2, code_size, text, nullptr};
    regions_[near_region] = {near_slot, page, text, nullptr};
    regions_[far_region] = {far_slot, page, text, nullptr};
    regions_[data_region] = {data_at, data_size, variable, nullptr};
    regions_[stack_region] = {stack_at, stack_size, variable, nullptr};

    std::size_t total = 0;
    for (const Region &region : regions_) total += region.size;
    backing_ = ::memfd_create("stage", MFD_CLOEXEC);
    KT_CHECK(backing_ >= 0 && ::ftruncate(backing_, static_cast<off_t>(total)) == 0);
    KT_CHECK(::sched_getaffinity(0, sizeof old_cpus_, &old_cpus_) == 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
    ::sched_setaffinity(0, sizeof one, &one);

    start_child();
    std::size_t offset = 0;
    for (Region &region : regions_) {
        void *view =
            ::mmap(nullptr, region.size, PROT_READ | PROT_WRITE, MAP_SHARED, backing_, static_cast<off_t>(offset));
        KT_CHECK(view != MAP_FAILED);
        region.view = static_cast<std::byte *>(view);
        map_into_child(region, offset);
        offset += region.size;
    }
    unmap_everything_else();
    initial_ = registers();
    initial_.orig_ax = ~std::uint64_t{0};
    initial_extended_ = extended();
}

Stage::~Stage() {
    ::kill(child_.value, SIGKILL);
    ::waitpid(child_.value, nullptr, 0);
    for (const Region &region : regions_) ::munmap(region.view, region.size);
    ::close(backing_);
    ::sched_setaffinity(0, sizeof old_cpus_, &old_cpus_);
}

void Stage::start_child() {
    const pid_t pid = ::fork();
    KT_CHECK(pid >= 0);
    if (pid == 0) {
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        ::syscall(SYS_kill, ::syscall(SYS_getpid), SIGSTOP);
        ::_exit(1);
    }
    child_ = Tid{pid};
    int status = 0;
    KT_CHECK(::waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
    KT_CHECK(::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD) == 0);
    syscall_at_ = registers().ip - arch::X86_64::syscall_bytes().size();
}

/// Runs one system call in the child, which is stopped behind one.
std::uint64_t Stage::system_call(std::uint64_t number, std::span<const std::uint64_t> arguments) {
    arch::X86_64Registers regs = registers();
    regs.ip = syscall_at_;
    arch::X86_64::set_syscall(regs, number, arguments);
    set_registers(regs);
    int status = 0;
    KT_CHECK(::ptrace(PTRACE_SINGLESTEP, child_.value, nullptr, nullptr) == 0);
    KT_CHECK(::waitpid(child_.value, &status, 0) == child_.value && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    return static_cast<std::uint64_t>(arch::X86_64::syscall_result(registers()));
}

void Stage::map_into_child(const Region &region, std::size_t offset) {
    const std::uint64_t arguments[] = {region.address,
                                       region.size,
                                       static_cast<std::uint64_t>(region.protection),
                                       MAP_SHARED | MAP_FIXED,
                                       static_cast<std::uint64_t>(backing_),
                                       offset};
    KT_CHECK(system_call(SYS_mmap, arguments) == region.address);
}

/// Leaves an instruction nothing to touch but the regions: its random addresses could hit what the child was born with.
void Stage::unmap_everything_else() {
    constexpr std::uint64_t lowest = 0x10000, end_of_user_space = 0x7ffffffff000, unregister = 1,
                            signature = 0x53053053;
    const std::uint64_t thread = registers().fs_base;
    const std::uint64_t rseq[] = {thread + static_cast<std::uint64_t>(__rseq_offset), 32, unregister, signature};
    if (__rseq_size != 0) KT_CHECK(system_call(SYS_rseq, rseq) == 0); // or the kernel would write to it

    const auto code = arch::X86_64::syscall_bytes();
    set_code(code);
    syscall_at_ = site;
    std::vector<const Region *> order;
    for (const Region &region : regions_) order.push_back(&region);
    std::sort(order.begin(), order.end(), [](auto *a, auto *b) { return a->address < b->address; });
    std::uint64_t from = lowest;
    auto unmap_to = [&](std::uint64_t to) {
        const std::uint64_t arguments[] = {from, to - from};
        KT_CHECK(system_call(SYS_munmap, arguments) == 0);
    };
    for (const Region *region : order) {
        unmap_to(region->address);
        from = region->address + region->size;
    }
    unmap_to(end_of_user_space);
}

std::size_t Stage::read(VirtAddr at, std::span<std::byte> into) {
    for (const Region &region : regions_) {
        if (at.value < region.address || at.value >= region.address + region.size) continue;
        const std::size_t offset = at.value - region.address, size = std::min(into.size(), region.size - offset);
        std::memcpy(into.data(), region.view + offset, size);
        return size;
    }
    return 0;
}

bool Stage::write(VirtAddr at, std::span<const std::byte> bytes) {
    for (const Region &region : regions_) {
        if ((region.protection & PROT_WRITE) == 0) continue;
        if (at.value < region.address || at.value + bytes.size() > region.address + region.size) continue;
        std::memcpy(region.view + (at.value - region.address), bytes.data(), bytes.size());
        return true;
    }
    return false;
}

void Stage::set_code(std::span<const std::byte> code) {
    const Region &region = regions_[code_region];
    std::memset(region.view, 0xcc, region.size);
    std::memcpy(region.view + (site - region.address), code.data(), code.size());
}

void Stage::set_slot(std::uint64_t slot, std::span<const std::byte> bytes) {
    const Region &region = regions_[slot == near_slot ? near_region : far_region];
    std::memset(region.view, 0xcc, region.size);
    std::memcpy(region.view, bytes.data(), bytes.size());
}

void Stage::set_memory(std::span<const std::byte> image) {
    KT_CHECK(image.size() == data_size + stack_size);
    std::memcpy(regions_[data_region].view, image.data(), data_size);
    std::memcpy(regions_[stack_region].view, image.data() + data_size, stack_size);
}

std::vector<std::byte> Stage::memory() const {
    std::vector<std::byte> image(data_size + stack_size);
    std::memcpy(image.data(), regions_[data_region].view, data_size);
    std::memcpy(image.data() + data_size, regions_[stack_region].view, stack_size);
    return image;
}

void Stage::set_registers(const arch::X86_64Registers &regs) {
    KT_CHECK(arch::X86_64Native::write_registers(child_, regs));
}

arch::X86_64Registers Stage::registers() const {
    arch::X86_64Registers regs;
    KT_CHECK(arch::X86_64Native::read_registers(child_, regs));
    return regs;
}

std::vector<std::byte> Stage::extended() const {
    std::vector<std::byte> image(initial_extended_.empty() ? 0x4000 : initial_extended_.size());
    image.resize(xsave_image(child_, image));
    return image;
}

void Stage::set_state(const arch::X86_64Registers &regs, std::span<const std::byte> extended) {
    set_registers(regs);
    iovec part{const_cast<std::byte *>(extended.data()), extended.size()};
    KT_CHECK(::ptrace(PTRACE_SETREGSET, child_.value, NT_X86_XSTATE, &part) == 0);
}

Ending Stage::run(int request) {
    int status = 0;
    KT_CHECK(::ptrace(static_cast<__ptrace_request>(request), child_.value, nullptr, nullptr) == 0);
    KT_CHECK(::waitpid(child_.value, &status, 0) == child_.value && WIFSTOPPED(status));
    Ending ending;
    ending.signal = WSTOPSIG(status);
    siginfo_t info{};
    if (::ptrace(PTRACE_GETSIGINFO, child_.value, nullptr, &info) == 0) {
        ending.code = info.si_code;
        ending.fault_address = reinterpret_cast<std::uint64_t>(info.si_addr);
    }
    ending.regs = registers();
    ending.extended = extended();
    ending.memory = memory();
    return ending;
}

std::vector<std::byte> comparable(std::vector<std::byte> extended) {
    // FXSAVE: opcode at 6, instruction pointer at 8, data pointer at 16. The XSAVE header begins at 512.
    constexpr std::size_t opcode = 6, mxcsr = 24, header = 512, header_size = 64;
    KT_CHECK(extended.size() >= header + header_size);
    std::fill(extended.begin() + opcode, extended.begin() + mxcsr, std::byte{0});
    std::fill(extended.begin() + header, extended.begin() + header + header_size, std::byte{0});
    return extended;
}

} // namespace ktrace::test

#endif
