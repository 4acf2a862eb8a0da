// Puppet: a traced child whose code, data and stack are a region that the test shares with it, and which runs one
// instruction at a time from any state of its registers.
#pragma once

#if defined(__aarch64__)

#include <csignal>
#include <cstddef>
#include <span>
#include <vector>

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm64/native.h"
#include "base/check.h"
#include "words.h"

namespace ktrace::arch::test {

class Puppet : public Memory {
  public:
    static constexpr std::size_t size = 4 << 20; // of the region
    static constexpr std::uint32_t breakpoint = 0xd4200000;

    Puppet() {
        void *map = ::mmap(nullptr, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        KT_CHECK(map != MAP_FAILED);
        region_ = static_cast<std::byte *>(map);
        const pid_t child = ::fork();
        KT_CHECK(child >= 0);
        if (child == 0) {
            ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
            ::raise(SIGSTOP);
            ::_exit(1);
        }
        child_ = Tid{child};
        wait();
    }
    ~Puppet() override {
        ::kill(child_.value, SIGKILL);
        ::waitpid(child_.value, nullptr, 0);
        ::munmap(region_, size);
    }
    Puppet(const Puppet &) = delete;

    VirtAddr at(std::size_t offset) const { return VirtAddr{reinterpret_cast<std::uint64_t>(region_ + offset)}; }
    std::span<std::byte> bytes(VirtAddr from, std::size_t count) const { return {region_ + (from - at(0)), count}; }

    /// Memory as the child has it.
    std::size_t read(VirtAddr from, std::span<std::byte> into) override {
        if (from < at(0) || at(size) < from + static_cast<std::int64_t>(into.size())) return 0;
        std::memcpy(into.data(), region_ + (from - at(0)), into.size());
        return into.size();
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }

    void put(VirtAddr to, std::span<const std::byte> code) {
        std::byte *into = region_ + (to - at(0));
        std::memcpy(into, code.data(), code.size());
        __builtin___clear_cache(reinterpret_cast<char *>(into), reinterpret_cast<char *>(into + code.size()));
    }
    /// Fills a range with breakpoints.
    void clear(VirtAddr from, std::size_t count) {
        std::vector<std::byte> all;
        while (all.size() < count)
            for (std::byte each : a64_bytes(breakpoint)) all.push_back(each);
        put(from, all);
    }

    Arm64Registers registers() const {
        Arm64Registers all;
        KT_CHECK(Arm64Native::read_registers(child_, all));
        return all;
    }
    void set_registers(const Arm64Registers &all) { KT_CHECK(Arm64Native::write_registers(child_, all)); }

    /// False: the instruction has faulted, and all is as it was.
    bool step() {
        KT_CHECK(::ptrace(PTRACE_SINGLESTEP, child_.value, nullptr, nullptr) == 0);
        return wait() == SIGTRAP;
    }

  private:
    int wait() {
        int status = 0;
        KT_CHECK(::waitpid(child_.value, &status, 0) == child_.value && WIFSTOPPED(status));
        return WSTOPSIG(status);
    }

    std::byte *region_ = nullptr;
    Tid child_;
};

} // namespace ktrace::arch::test

#endif
