// StoppedThread: what a program may ask of the thread that has stopped at its probe, beyond the registers; and its
// stack, also for ktrace's own questions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "os/stopped.h"
#include "program/program.h"
#include "trap/world.h"

namespace ktrace::trap {

/// The frames of a thread of the process, innermost first; returns how many. `registers`: with the pc that is the
/// program's own.
std::size_t unwind_stack(World &world, Traced &traced, const arch::Host::Registers &registers,
                         std::span<symbols::StackFrame> into);

class StoppedThread final : public program::ThreadPort {
  public:
    /// All are borrowed. `registers`: as the program sees them.
    StoppedThread(World &world, Traced &traced, os::Stopped &stopped, const arch::Host::Registers &registers)
        : world_(world), traced_(traced), stopped_(stopped), registers_(registers) {}

    const arch::Host::FpRegisters *floating() override { return stopped_.floating(); }
    std::string_view comm() override;
    std::optional<VirtAddr> tls(std::int64_t block, std::uint64_t offset) override;
    std::size_t stack(std::span<std::uint64_t> into) override;

  private:
    World &world_;
    Traced &traced_;
    os::Stopped &stopped_;
    const arch::Host::Registers &registers_;
};

} // namespace ktrace::trap
