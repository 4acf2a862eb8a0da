// Where instructions of a function start, and where its branches lead. x86 code does not show it, so it is decoded
// along the flow of control, which never meets data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "x86_64/insn.h"

namespace ktrace::arch::x86 {

/// True where control can go on to the next instruction.
bool falls_through(Kind kind);

/// The instructions that the entry of a function reaches by direct jumps and branches.
class Reached {
  public:
    explicit Reached(std::span<const std::byte> function);

    /// The start of the last instruction that was reached at or before `offset` (0: at least the entry).
    std::size_t last_start(std::size_t offset) const;
    bool is_start(std::size_t offset) const { return lengths_[offset] != 0; }
    /// True for a place within an instruction that starts before it: jumps pass over a prefix (lock, in C libraries).
    bool is_within(std::size_t offset) const;

    /// Decodes also what lies between (it may be data), so that all that may be a target is one.
    void reach_the_rest();
    /// Offsets to which direct jumps, branches and calls lead, in any order, perhaps several times.
    std::span<const std::size_t> targets() const { return targets_; }

  private:
    void follow_all(std::size_t start);
    void follow(std::size_t at);
    void add_target(std::size_t next, const Insn &insn);

    std::span<const std::byte> function_;
    std::vector<std::uint8_t> lengths_; // of the instruction that starts at this offset, 0: none does
    std::vector<std::size_t> pending_, targets_;
};

} // namespace ktrace::arch::x86
