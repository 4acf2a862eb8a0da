// arm64's answers to the contract (arch/isa.h says when each is called). Files: registers.cc (the table), insn.cc (the
// encodings of A64), plan.cc (plan, probeable, place), emulate.cc, step.cc, call.cc (calls and returns), convention.cc
// (AAPCS64), syscall.cc, native.cc.
//
// Where instructions run: those that read the pc are emulated on the registers; everything else, indirect branches
// included, runs as a copy in the slot, where the CPU itself keeps BTYPE, pointer authentication and the guarded
// control stack right. Slots are not guarded pages (no PROT_BTI), so a copied landing pad is a nop and any way into a
// slot is allowed.
#pragma once

#include "arm64/insn.h"
#include "arm64/registers.h"
#include "isa.h"

namespace ktrace::arch {

/// DWARF register numbers (AADWARF64, 4.1).
namespace arm64_dwarf {
inline constexpr int x0 = 0, sp = 31, pc = 32, tpidr = 36, v0 = 64;
}

struct Arm64Plan : PlanCommon {
    std::uint32_t word = 0; // the original instruction
    A64Form form = A64Form::unknown;
    std::int64_t displacement = 0; // pc-relative forms: from the site (adrp: from its page)
};

struct Arm64 {
    using Registers = Arm64Registers;
    using FpRegisters = Arm64FpRegisters;
    using UpperRegisters = Arm64UpperRegisters;
    using Plan = Arm64Plan;

    static constexpr std::string_view name = "arm64";
    static constexpr std::uint16_t elf_machine = 183; // EM_AARCH64
    static constexpr std::uint64_t reach = 0x7fff000; // of `b`, 128 MB, less a page
    static constexpr std::size_t longest = a64_size;
    static constexpr int stack_pointer_dwarf = arm64_dwarf::sp;
    static constexpr int frame_pointer_dwarf = 29; // x29
    static constexpr std::int64_t return_pop = 0;

    static std::span<const RegisterInfo> registers();
    static UpperPart upper_part(int) { return {}; }
    static VirtAddr pc(const Registers &regs) { return VirtAddr{regs.pc}; }
    static VirtAddr sp(const Registers &regs) { return VirtAddr{regs.sp}; }
    static void set_pc(Registers &regs, VirtAddr pc) { regs.pc = pc.value; }

    /// `brk` with an immediate of our own (0x6b74), so that it is never taken for one that the program has.
    static std::span<const std::byte> trap_bytes();
    static VirtAddr trap_address(VirtAddr pc) { return pc; } // brk reports its own address

    /// Refuses, beyond what `plan` refuses, the places between a load-exclusive and its store (the trap would make the
    /// store fail for ever) and behind an instruction that prefixes its neighbour.
    static Probeable probeable(std::span<const std::byte> function, VirtAddr at, std::uint64_t offset);
    static Plan plan(std::span<const std::byte> code, VirtAddr at);
    static Placement place(const Plan &plan, VirtAddr site, VirtAddr slot);
    static Emulated emulate(const Plan &plan, VirtAddr site, Registers &regs, Memory &memory);

    static std::uint64_t begin_step(const Placement &placed, VirtAddr slot, Registers &regs);
    static Stepped finish_step(const Plan &plan, const Placement &placed, VirtAddr site, VirtAddr slot,
                               std::uint64_t old_scratch, Registers &regs, Memory &memory);
    static void abort_step(const Placement &placed, VirtAddr site, VirtAddr slot, std::uint64_t old_scratch,
                           Registers &regs);
    static bool steps_itself(const Registers &) { return false; } // no program can
    static void step_itself(Registers &, bool) {}
    static SlotPosition slot_position(const Placement &placed, VirtAddr slot, VirtAddr pc);

    static std::optional<std::uint64_t> argument(const Registers &regs, Memory &memory, unsigned n);
    static std::uint64_t return_value(const Registers &regs) { return regs.x[0]; }
    static void set_return_value(Registers &regs, std::uint64_t value) { regs.x[0] = value; }
    /// Pointer authentication signs in the bits above those that a program's addresses have.
    static VirtAddr code_address(std::uint64_t saved) { return VirtAddr{saved & 0xffffffffffff}; }
    static std::optional<VirtAddr> return_address(const Registers &regs, Memory &) { return VirtAddr{regs.x[30]}; }
    static Frame frame(const Registers &regs, VirtAddr return_address) { return {VirtAddr{regs.sp}, return_address}; }
    static bool frame_alive(const Frame &frame, VirtAddr sp, When when) {
        // A call leaves no word on the stack: sp at entry is the sp of the caller, and the same again after the return.
        // So at an entry an equal sp may be a tail call of the living frame; at a return address it has ended.
        return when == When::at_entry ? sp <= frame.sp : sp < frame.sp;
    }
    /// A return leaves the address in x30; a jump to there has another one in it, which it came with.
    static bool has_returned(const Registers &regs, const Frame &frame, Memory &) {
        return code_address(regs.x[30]) == frame.return_address;
    }
    static bool is_on_stack(const Frame &frame, Memory &memory);
    static bool return_at_once(Registers &regs, Memory &) {
        set_pc(regs, VirtAddr{regs.x[30]});
        return true;
    }
    static bool redirect_return(Registers &regs, Memory &, VirtAddr to) {
        regs.x[30] = to.value;
        return true;
    }
    static ktrace_recovery_entry recovery_entry(const Plan &plan, const Placement &placed, VirtAddr site,
                                                VirtAddr slot);
    /// Arm ARM, ESR_ELx.EC: unknown 0x00, instruction and data abort 0x20 and 0x24, alignment 0x26, floating point
    /// 0x2c, breakpoint instruction 0x3c.
    static int fault_number(int signal, bool with_address);
    static void leave_slot_in_syscall(const Plan &plan, VirtAddr site, Registers &regs);
    static std::span<const std::byte> signal_trampoline();
    static std::optional<Registers> interrupted(VirtAddr sp, Memory &memory);
    static std::optional<VirtAddr> thread_pointer(const Registers &regs) { return VirtAddr{regs.tpidr}; }
    /// ELF TLS, variant I: the program's block follows two words at the thread pointer.
    static std::int64_t program_tls(std::uint64_t, std::uint64_t alignment) {
        return static_cast<std::int64_t>((16 + alignment - 1) / alignment * alignment);
    }
    static std::optional<CallBefore> call_before(std::span<const std::byte> code, VirtAddr end);
    static std::optional<VirtAddr> longjmp_sp(const Registers &regs, Memory &memory);
    static std::uint64_t go_argument(const Registers &regs) { return regs.x[0]; } // Go's abi-internal.md, arm64
    static std::optional<VirtAddr> plt_target_slot(std::span<const std::byte> code, VirtAddr at);

    static std::uint64_t widest_vector(std::span<const std::byte>) { return 16; }
    static std::vector<value::Place> parameter_places(std::span<const value::Type *const> parameters,
                                                      const value::Type *result);
    /// A result in memory lies where x8 pointed at entry; a callee need not keep x8, so its place is that entry value.
    static value::Place result_place(const value::Type *result);
    static std::vector<value::Place> go_result_places(std::span<const value::Type *const> results);

    static std::span<const std::byte> syscall_bytes();
    static void set_syscall(Registers &regs, std::uint64_t number, std::span<const std::uint64_t> arguments);
    static bool is_foreign_syscall(std::byte) { return false; } // there is one instruction for them
    static std::uint64_t own_syscall_number(std::uint64_t foreign) { return foreign; }
    /// The registers do not show whether x0 holds a result: Arm64Native::was_in_call.
    static bool interrupted_for_good(const Registers &regs) { return regs.x[0] == static_cast<std::uint64_t>(-4); }
    static void restart_syscall(Registers &regs, std::uint64_t first_argument) {
        regs.x[0] = first_argument;
        regs.pc -= a64_size;
    }
    static void let_syscall_fail(Registers &) {}
    static std::int64_t syscall_result(const Registers &regs) { return static_cast<std::int64_t>(regs.x[0]); }
};

static_assert(InstructionSet<Arm64>);

} // namespace ktrace::arch
