// Stage: a traced child of the test in which one instruction at a time runs on prepared registers and memory, so that
// the ways of getting over it can be compared. Nothing of the child's own code runs again after it has stopped once.
//
// Invariants: the regions below are shared with the test, at the same addresses for every run, and are all that the
// child has mapped; test and child are pinned to one CPU while the stage lives.
#pragma once

#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>
#include <sched.h>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/memory.h"
#include "x86_64/registers.h"

namespace ktrace::test {

/// A part of the child's address space that the test sees too.
struct Region {
    std::uint64_t address = 0;
    std::size_t size = 0;
    int protection = 0;        // PROT_*, in the child
    std::byte *view = nullptr; // the test's own mapping, writable
    std::span<std::byte> bytes() const { return {view, size}; }
};

/// How a run ended.
struct Ending {
    int signal = 0;                  // that stopped the child: SIGTRAP for its end or a step
    int code = 0;                    // si_code
    std::uint64_t fault_address = 0; // si_addr, for faults
    arch::X86_64Registers regs;
    std::vector<std::byte> extended; // XSAVE image
    std::vector<std::byte> memory;   // of data and stack
};

/// A pseudo-random generator with the same sequence everywhere (splitmix64).
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next();
    std::uint64_t below(std::uint64_t limit) { return next() % limit; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

  private:
    std::uint64_t state_;
};

class Stage : public Memory {
  public:
    // All below 4 GB, so that 32-bit addresses work. The far slot reaches the site, but not the data.
    static constexpr std::uint64_t site = 0x90008000, near_slot = 0x90100000, far_slot = 0x10020000;
    static constexpr std::uint64_t data_at = 0x90200000, stack_at = 0x90300000;
    static constexpr std::size_t data_size = 0x4000, stack_size = 0x2000;

    Stage();
    ~Stage() override;
    Stage(const Stage &) = delete;

    /// Memory as the child may touch it.
    std::size_t read(VirtAddr at, std::span<std::byte> into) override;
    bool write(VirtAddr at, std::span<const std::byte> bytes) override;

    /// Fills the code region with int3 and puts `code` at the site.
    void set_code(std::span<const std::byte> code);
    void set_slot(std::uint64_t slot, std::span<const std::byte> bytes);
    /// Data and stack, as one image.
    void set_memory(std::span<const std::byte> image);
    std::vector<std::byte> memory() const;
    std::span<std::byte> data() { return regions_[data_region].bytes(); }

    const arch::X86_64Registers &initial_registers() const { return initial_; }
    const std::vector<std::byte> &initial_extended() const { return initial_extended_; }

    void set_state(const arch::X86_64Registers &regs, std::span<const std::byte> extended);
    void set_registers(const arch::X86_64Registers &regs);
    arch::X86_64Registers registers() const;
    /// Lets the child run to its next stop (PTRACE_CONT, PTRACE_SINGLESTEP, PTRACE_SYSCALL).
    Ending run(int request);
    Tid tid() const { return child_; }

  private:
    enum : std::size_t { code_region, near_region, far_region, data_region, stack_region, regions };

    void start_child();
    void map_into_child(const Region &region, std::size_t offset);
    void unmap_everything_else();
    std::uint64_t system_call(std::uint64_t number, std::span<const std::uint64_t> arguments);
    std::vector<std::byte> extended() const;

    Region regions_[regions];
    int backing_ = -1; // memfd
    Tid child_;
    std::uint64_t syscall_at_ = 0; // a `syscall` instruction of the child's own
    arch::X86_64Registers initial_;
    std::vector<std::byte> initial_extended_;
    cpu_set_t old_cpus_;
};

/// The part of an XSAVE image that two runs must share: all but the x87 instruction and data pointers, which are
/// addresses of the copy, and the header.
std::vector<std::byte> comparable(std::vector<std::byte> extended);

} // namespace ktrace::test

#endif
