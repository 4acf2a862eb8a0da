// The part of arm64 that needs ptrace: reading and writing the registers of a stopped task. Only this ISA's native.cc
// includes <sys/user.h>; it proves with static_assert that our structs are the kernel's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <linux/audit.h>

#include "arm64/registers.h"
#include "base/addr.h"
#include "base/ids.h"
#include "isa.h"

namespace ktrace::arch {

/// All return false (nothing) where the task is gone or not stopped; errno is ptrace's.
struct Arm64Native {
    static bool read_registers(Tid tid, Arm64Registers &into);
    static bool write_registers(Tid tid, const Arm64Registers &from);
    static bool read_floating(Tid tid, Arm64FpRegisters &into);
    static bool write_floating(Tid tid, const Arm64FpRegisters &from);
    /// One register alone: arm64 has no PTRACE_PEEKUSER, so this moves the whole set.
    static std::optional<VirtAddr> read_pc(Tid tid);
    static bool write_pc(Tid tid, VirtAddr pc);
    static std::optional<VirtAddr> read_sp(Tid tid);
    /// Debug registers are not used on this machine yet.
    static constexpr std::size_t watch_registers = 0;
    /// perf_event_attr::bp_len of one that stops where an instruction begins.
    static constexpr std::uint32_t audit_arch = AUDIT_ARCH_AARCH64;
    static bool set_watches(Tid, std::span<const WatchRegister>) { return false; }
    static unsigned watch_hits(Tid) { return 0; }
    static void clear_watch_hits(Tid) {}
    /// The SIGTRAP handler for a target's page (recovery.h); empty bytes: there is none for this machine.
    static RecoveryCode recovery_code();
};

} // namespace ktrace::arch
