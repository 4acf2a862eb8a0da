// Stopped: the token of one ptrace-stop. It caches the registers (read at most once, written back at most once, and
// only what changed: the pc alone is cheaper than all), and must be spent by resume(); dropping it unspent is a bug and
// aborts.
//
// Invariant: when any call answers `gone`, the task has died under us; the token is then spent by anything.
#pragma once

#include <cstdint>
#include <optional>

#include "arch/host.h"
#include "base/addr.h"
#include "os/tracee/ptrace.h"
#include "os/tracee/wait.h"

namespace ktrace::os {

class Stopped {
  public:
    Stopped(Waiter &waiter, const Stop &stop) : waiter_(&waiter), stop_(stop) {}
    Stopped(Stopped &&other) noexcept;
    Stopped &operator=(Stopped &&) = delete;
    ~Stopped();

    Tid tid() const { return stop_.tid; }
    const Stop &stop() const { return stop_; }
    bool gone() const { return gone_; }

    VirtAddr pc();
    /// The same, if it was read already.
    std::optional<VirtAddr> known_pc() const { return registers_ ? arch::Host::pc(*registers_) : pc_; }
    void set_pc(VirtAddr pc);
    VirtAddr sp();
    /// Where the task stands while it makes system calls for us, and afterwards until the token is spent: at a trap
    /// that it has hit, not behind it, since the signal that leads over it when ktrace is killed is forgotten by then.
    void rest_at(VirtAddr pc) { rest_ = pc; }
    std::optional<VirtAddr> rest() const { return rest_; }
    /// All general registers, read on first use. After gone(): zeros.
    const arch::Host::Registers &registers();
    /// The same to be changed; written back by resume or write_back.
    arch::Host::Registers &change_registers();
    /// nullptr: cannot be read.
    const arch::Host::FpRegisters *floating();
    /// The upper parts of vector registers; nullptr: cannot be read.
    const arch::Host::UpperRegisters *upper();
    /// As floating, to be changed; nullptr: cannot be read.
    arch::Host::FpRegisters *change_floating();

    /// Writes what changed: the general registers, the pc among them, in one request, which is the last.
    void write_back();
    /// Writes the changes and resumes the task. The token is spent. False: gone.
    bool resume(Resume how, int signal = 0) &&;
    /// Spends the token without resuming the task: it has died, or stays stopped until it is taken up again by its stop
    /// (a consumed event stop).
    void keep() &&;

  private:
    Waiter *waiter_;
    Stop stop_;
    std::optional<VirtAddr> rest_;
    std::optional<VirtAddr> pc_; // valid while registers_ are not read
    bool pc_changed_ = false;
    std::optional<arch::Host::Registers> registers_;
    bool registers_changed_ = false;
    std::optional<arch::Host::FpRegisters> floating_;
    bool floating_changed_ = false;
    std::optional<arch::Host::UpperRegisters> upper_;
    bool gone_ = false;
};

} // namespace ktrace::os
