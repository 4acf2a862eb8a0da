// A CPU to agree with: runs code of a test on the arm64 machine (or emulator) at hand, from any state of the registers.
//
// A region of memory is filled with brk. `run` enters it by a SIGTRAP handler that sets the registers, and leaves by
// the handler of the next brk, which reads them: so whatever an instruction does, it ends on a brk, and the stack
// pointer can be anything, since handlers have a stack of their own.
#pragma once

#if defined(__aarch64__)

#include <cstddef>
#include <cstdint>

#include "arm64/arm64.h"

namespace ktrace::arch::test {

class Cpu {
  public:
    static constexpr std::size_t size = 1 << 16; // of the region

    Cpu();
    ~Cpu();
    Cpu(const Cpu &) = delete;

    VirtAddr at(std::size_t offset) const;
    /// Fills the region with brk.
    void clear();
    void put(VirtAddr address, std::span<const std::byte> bytes);

    /// Runs from regs.pc to the next brk.
    void run(Arm64Registers &regs, Arm64FpRegisters &floating);

  private:
    std::byte *region_;
};

} // namespace ktrace::arch::test

#endif
