// StoppedThread: the state of the stopped thread that a program may read beyond the registers; and its stack, which
// ktrace itself reads, too.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"
#include "program/run/program.h"

namespace ktrace::engine {

/// The frames of a thread of the process, innermost first; returns how many. `registers`: with the pc that is the
/// program's own.
std::size_t unwind_stack(Engine &engine, Process &process, const arch::Host::Registers &registers,
                         std::span<symbols::StackFrame> into);

class StoppedThread final : public program::ThreadPort {
  public:
    /// All are borrowed. `registers`: as the program sees them.
    StoppedThread(Engine &engine, Process &process, os::Stopped &stopped, const arch::Host::Registers &registers)
        : engine_(engine), process_(process), stopped_(stopped), registers_(registers) {}

    const arch::Host::FpRegisters *floating() override { return stopped_.floating(); }
    const arch::Host::UpperRegisters *upper() override { return stopped_.upper(); }
    std::string_view comm() override;
    std::optional<VirtAddr> tls(std::int64_t block, std::uint64_t offset) override;
    std::size_t stack(std::span<std::uint64_t> into) override;

  private:
    Engine &engine_;
    Process &process_;
    os::Stopped &stopped_;
    const arch::Host::Registers &registers_;
};

} // namespace ktrace::engine
