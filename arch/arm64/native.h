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
    static bool read_upper(Tid, Arm64UpperRegisters &) { return true; }
    /// One register alone: arm64 has no PTRACE_PEEKUSER, so this moves the whole set.
    static std::optional<VirtAddr> read_pc(Tid tid);
    static bool write_pc(Tid tid, VirtAddr pc);
    static std::optional<VirtAddr> read_sp(Tid tid);
    static constexpr std::uint32_t audit_arch = AUDIT_ARCH_AARCH64;
    /// Debug registers: all of a task's are set (those that are not given are switched off). They stop a task before it
    /// reads or writes.
    static constexpr std::size_t watch_registers = 4;
    static constexpr bool watches_stop_before = true;
    static bool set_watches(Tid tid, std::span<const WatchRegister> watches);
    /// Which of them has made the task stop where it stands, bit N for the Nth.
    static unsigned watch_hits(Tid tid);
    static void clear_watch_hits(Tid) {}
    /// At an interrupt's stop: the task was in a system call, which has failed with EINTR, or which the kernel
    /// restarts: it has moved the pc to the call's instruction then, where a task may stand that has not made it yet.
    static constexpr bool moves_to_restart = true;
    static bool was_in_call(Tid tid, const Arm64Registers &registers);
    /// Where the kernel restarts it, /proc/TID/syscall shows that call until `hide_call`.
    static void show_call(Tid tid, const Arm64Registers &registers);
    static void hide_call(Tid tid);
    /// A task whose tracer has died in its single step goes on in steps: the kernel leaves the flag on (__ptrace_unlink
    /// in kernel/ptrace.c), and no handler can take it off.
    static constexpr bool steps_outlive_tracer = true;
    /// The SIGTRAP handler for a target's page (recovery.h); empty bytes: there is none for this machine.
    static RecoveryCode recovery_code();
    /// The counter of in_process.h runs at one rate in all states of the processor, and is the same on all of them.
    static constexpr bool has_steady_counter() { return true; } // Arm ARM, D12.1.2
    /// It has the instructions that stubs and the agent use (isa_detour.h).
    static bool can_jump();
    /// Some threads have shadow stacks, perhaps, and no file of theirs says so.
    static bool may_have_shadow_stacks();
    /// It guards pages that ask for it: DetourSite::is_guarded.
    static bool guards_pages();
};

} // namespace ktrace::arch
