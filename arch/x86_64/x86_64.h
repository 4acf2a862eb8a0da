// x86-64's answers to the contract (arch/isa.h says when each is called). Files: registers.cc (the table), insn.cc
// (Zydis), plan.cc (plan), probeable.cc, place.cc (slots), emulate.cc, step.cc, call.cc (calls and returns), psabi.cc
// (where typed values lie, by the classes of classify.cc), syscall.cc, native.cc.
#pragma once

#include "arch/recovery.h"
#include "isa.h"
#include "x86_64/insn.h"
#include "x86_64/registers.h"

namespace ktrace::arch {

struct X86_64Plan : PlanCommon {
    std::byte bytes[15] = {}; // the original instruction
    x86::Insn insn;
};

struct X86_64 {
    using Registers = X86_64Registers;
    using FpRegisters = X86_64FpRegisters;
    using UpperRegisters = X86_64UpperRegisters;
    using Plan = X86_64Plan;

    static constexpr std::string_view name = "x86_64";
    static constexpr std::uint16_t elf_machine = 62; // EM_X86_64
    static constexpr std::uint64_t reach = 0x7fff0000;
    static constexpr std::size_t longest = 15;
    static constexpr int stack_pointer_dwarf = 7;
    static constexpr int frame_pointer_dwarf = 6;
    static constexpr std::int64_t return_pop = 8;

    static std::span<const RegisterInfo> registers();
    static UpperPart upper_part(int dwarf);
    static VirtAddr pc(const Registers &regs) { return VirtAddr{regs.ip}; }
    static VirtAddr sp(const Registers &regs) { return VirtAddr{regs.sp}; }
    static void set_pc(Registers &regs, VirtAddr pc) { regs.ip = pc.value; }

    static std::span<const std::byte> trap_bytes();
    static VirtAddr trap_address(VirtAddr pc) { return pc - 1; } // int3 reports the pc behind it

    static Probeable probeable(std::span<const std::byte> function, VirtAddr at, std::uint64_t offset);
    static Plan plan(std::span<const std::byte> code, VirtAddr at);
    static Placement place(const Plan &plan, VirtAddr site, VirtAddr slot);
    static Emulated emulate(const Plan &plan, VirtAddr site, Registers &regs, Memory &memory);

    static std::uint64_t begin_step(const Placement &placed, VirtAddr slot, Registers &regs);
    static Stepped finish_step(const Plan &plan, const Placement &placed, VirtAddr site, VirtAddr slot,
                               std::uint64_t old_scratch, Registers &regs, Memory &memory);
    static void abort_step(const Placement &placed, VirtAddr site, VirtAddr slot, std::uint64_t old_scratch,
                           Registers &regs);
    static bool steps_itself(const Registers &regs);
    static void step_itself(Registers &regs, bool does);
    static SlotPosition slot_position(const Placement &placed, VirtAddr slot, VirtAddr pc);
    static ktrace_recovery_entry recovery_entry(const Plan &plan, const Placement &placed, VirtAddr site,
                                                VirtAddr slot);
    /// Method::syscall, at the system call's entry stop (pc behind the copy): moves the pc behind the site, and with it
    /// rcx, where the `syscall` instruction has put the return address.
    /// Intel SDM vol. 3, 6.3.1: divide error 0, breakpoint 3, invalid opcode 6, alignment 17; stack 12, protection 13
    /// and page fault 14 by whether the kernel knows an address.
    static int fault_number(int signal, bool with_address);
    static void leave_slot_in_syscall(const Plan &plan, VirtAddr site, Registers &regs);

    static std::optional<std::uint64_t> argument(const Registers &regs, Memory &memory, unsigned n);
    static std::uint64_t return_value(const Registers &regs) { return regs.ax; }
    static void set_return_value(Registers &regs, std::uint64_t value) { regs.ax = value; }
    static VirtAddr code_address(std::uint64_t saved) { return VirtAddr{saved}; }
    static std::optional<VirtAddr> return_address(const Registers &regs, Memory &memory);
    static Frame frame(const Registers &regs, VirtAddr return_address) { return {VirtAddr{regs.sp}, return_address}; }
    static bool frame_alive(const Frame &frame, VirtAddr sp, When when) {
        // The frame's return address lies at frame.sp. At another entry sp may be equal (a tail call); once it has
        // returned sp is above.
        return when == When::at_entry ? sp <= frame.sp : sp <= frame.sp;
    }
    static bool has_returned(const Registers &, const Frame &frame, Memory &memory) {
        return is_on_stack(frame, memory);
    }
    static bool is_on_stack(const Frame &frame, Memory &memory);
    static bool return_at_once(Registers &regs, Memory &memory);
    static bool redirect_return(Registers &regs, Memory &memory, VirtAddr to);
    static std::span<const std::byte> signal_trampoline();
    static std::optional<Registers> interrupted(VirtAddr, Memory &) { return std::nullopt; }
    static std::optional<VirtAddr> thread_pointer(const Registers &regs) { return VirtAddr{regs.fs_base}; }
    /// ELF TLS, variant II: the program's block ends where the thread pointer points.
    static std::int64_t program_tls(std::uint64_t size, std::uint64_t alignment) {
        return static_cast<std::int64_t>(0 - (size + alignment - 1) / alignment * alignment);
    }
    static std::optional<CallBefore> call_before(std::span<const std::byte> code, VirtAddr end);
    static std::optional<VirtAddr> longjmp_sp(const Registers &regs, Memory &memory);
    static std::uint64_t go_argument(const Registers &regs) { return regs.ax; } // Go's abi-internal.md, amd64
    static std::optional<VirtAddr> plt_target_slot(std::span<const std::byte> code, VirtAddr at);

    static std::uint64_t widest_vector(std::span<const std::byte> code);
    static std::vector<value::Place> parameter_places(std::span<const value::Type *const> parameters,
                                                      const value::Type *result);
    static value::Place result_place(const value::Type *result);
    static std::vector<value::Place> go_result_places(std::span<const value::Type *const> results);

    static std::span<const std::byte> syscall_bytes();
    static void set_syscall(Registers &regs, std::uint64_t number, std::span<const std::uint64_t> arguments);
    /// By the last byte of its instruction: int $0x80, whose calls have the numbers of 32-bit programs; not syscall.
    static bool is_foreign_syscall(std::byte last) { return last == std::byte{0x80}; }
    /// Of the calls that sleep or make tasks (arch/x86/entry/syscalls/syscall_32.tbl).
    static std::uint64_t own_syscall_number(std::uint64_t foreign);
    static bool interrupted_for_good(const Registers &regs) {
        return static_cast<std::int64_t>(regs.orig_ax) >= 0 && regs.ax == static_cast<std::uint64_t>(-4); // EINTR
    }
    static void restart_syscall(Registers &regs, std::uint64_t) {
        regs.ax = regs.orig_ax;
        regs.ip -= 2;
    }
    static void let_syscall_fail(Registers &regs) { regs.orig_ax = ~std::uint64_t{0}; } // in none
    static std::int64_t syscall_result(const Registers &regs) { return static_cast<std::int64_t>(regs.ax); }
};

static_assert(InstructionSet<X86_64>);

} // namespace ktrace::arch
