// The part of x86-64 that needs ptrace: reading and writing the registers of a stopped task. Only this ISA's native.cc
// includes <sys/user.h>; it proves with static_assert that our structs are the kernel's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <linux/audit.h>

#include "base/addr.h"
#include "base/ids.h"
#include "isa.h"
#include "x86_64/registers.h"

namespace ktrace::arch {

/// All return false (nothing) where the task is gone or not stopped; errno is ptrace's.
struct X86_64Native {
    static bool read_registers(Tid tid, X86_64Registers &into);
    static bool write_registers(Tid tid, const X86_64Registers &from);
    static bool read_floating(Tid tid, X86_64FpRegisters &into);
    static bool write_floating(Tid tid, const X86_64FpRegisters &from);
    /// Those that the processor does not have, and those that are as at the start, are zeros.
    static bool read_upper(Tid tid, X86_64UpperRegisters &into);
    /// One register alone, which is cheaper than all.
    static std::optional<VirtAddr> read_pc(Tid tid);
    static bool write_pc(Tid tid, VirtAddr pc);
    static std::optional<VirtAddr> read_sp(Tid tid);
    static constexpr std::uint32_t audit_arch = AUDIT_ARCH_X86_64;
    /// Debug registers: all of a task's are set (those that are not given are switched off). They stop a task when it
    /// has read or written.
    static constexpr std::size_t watch_registers = 4;
    static constexpr bool watches_stop_before = false;
    static bool set_watches(Tid tid, std::span<const WatchRegister> watches);
    /// Which of them have fired since they were cleared, bit N for the Nth.
    static unsigned watch_hits(Tid tid);
    static void clear_watch_hits(Tid tid);
    /// At an interrupt's stop: the task was in a system call, which has failed with EINTR, or which the kernel is about
    /// to restart.
    static constexpr bool moves_to_restart = false;
    static bool was_in_call(Tid tid, const X86_64Registers &registers);
    /// Then /proc/TID/syscall shows that call until `hide_call`: it always does.
    static void show_call(Tid, const X86_64Registers &) {}
    static void hide_call(Tid) {}
    /// The handler takes off the flag of a single step whose tracer has died.
    static constexpr bool steps_outlive_tracer = false;
    /// The SIGTRAP handler for a target's page (recovery.h); empty bytes: there is none for this machine.
    static RecoveryCode recovery_code();
    /// The counter of in_process.h runs at one rate in all states of the processor, and is the same on all of them.
    static bool has_steady_counter();
    /// It has the instructions that stubs and the agent use (isa_detour.h).
    static constexpr bool can_jump() { return true; }
    /// Some threads have shadow stacks, perhaps, and no file of theirs says so.
    static constexpr bool may_have_shadow_stacks() { return false; }
    /// It guards pages that ask for it: DetourSite::is_guarded.
    static constexpr bool guards_pages() { return false; }
};

} // namespace ktrace::arch
