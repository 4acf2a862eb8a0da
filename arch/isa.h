// THE CONTRACT of an instruction set: a type with the static functions below, all pure (bytes, registers and a Memory
// port in, values out; none of them traces anything). Both ISAs are compiled and unit-tested on any host; host.h names
// the one that this build traces. The parts that need ptrace live in each ISA's native.cc, declared in its native.h.
//
// Words: a *site* is the address of the probed instruction; the *slot* is the place near it where its copy runs.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/recovery.h"
#include "base/addr.h"
#include "base/memory.h"
#include "value/place.h"
#include "value/type.h"

namespace ktrace::arch {

/// Above every number of SYS_*.
inline constexpr std::uint64_t no_syscall = 0xffff;

/// How a probed instruction is got over.
enum class Method : std::uint8_t {
    emulate, // done on the registers (and the stack, for a call): one stop
    boost,   // its copy in the slot, followed by a jump back: one stop. A transfer's does not come back
    step,    // its copy in the slot, single-stepped, then fixed up: two stops
    syscall, // its copy in the slot, run up to the system call's entry stop, where the pc is set behind the site: two
             // stops; no address of a slot is ever seen by the call, by a signal in it, or by a thread that it makes
    refuse,  // cannot be probed: Plan::why says why
};

/// The instruction's effect on the flow of control; return probes and `-r` ask.
enum class Flow : std::uint8_t { next, jump, branch, call, ret, syscall, other };

/// The part that every ISA's Plan has; each adds what its emulate needs.
struct PlanCommon {
    Method method = Method::refuse;
    Flow flow = Flow::next;
    std::uint8_t length = 0;        // of the original instruction, bytes
    bool repeats = false;           // one single-step may leave the pc on it (x86 rep prefixes)
    bool uses_memory = false;       // emulate: it loads its target or pushes; where a slot is in reach it runs there
    const char *why = nullptr;      // refuse: a clause for the user; a string constant
    std::optional<VirtAddr> target; // direct jump, branch, call: where to
};

inline constexpr std::size_t slot_size = 64; // bytes a slot takes, for every ISA

/// Is a slot to be had for it? One that is emulated and uses memory runs without, too, but as ktrace reads and writes.
inline bool takes_slot(const PlanCommon &plan) {
    return plan.method != Method::refuse && (plan.method != Method::emulate || plan.uses_memory);
}

/// The bytes of a slot and what is where in them.
struct Placement {
    Method method = Method::refuse; // the plan's, or boost lowered to step (an operand that does not reach), or refuse,
                                    // or boost where a transfer that uses memory has a slot
    const char *why = nullptr;      // refuse
    std::uint8_t size = 0;          // bytes used
    std::uint8_t copy_at = 0;       // where the copy starts
    std::uint8_t copy_end = 0;      // first byte behind the copy (boost: the jump back)
    int scratch = -1;               // ISA register number that must hold `scratch_value` while the copy runs, or -1
    std::uint64_t scratch_value = 0;
    bool sets_trap_flag = false; // x86 popf: while it waits for its step, the flags show the one that steps it
    std::uint8_t pushed = 0;     // a call's: bytes that lie on the stack once its copy has begun
    std::byte bytes[slot_size] = {};
};

/// Outcome of emulate.
struct Emulated {
    enum class Outcome : std::uint8_t { done, fault } outcome = Outcome::done;
    VirtAddr fault_address; // fault: the registers are unchanged; the target gets SIGSEGV as if the instruction had run
    // x86 reports no address (SI_KERNEL) of a non-canonical one: SIGSEGV for protection, SIGBUS for stack
    enum class Fault : std::uint8_t { page, protection, stack } fault = Fault::page;
};

/// Where a pc in a slot is, and how it may be shown.
enum class SlotPosition : std::uint8_t {
    at_start, // nothing done: the pc belongs to the site
    inside,   // in the middle: step on until it is out
    after,    // the copy is done: the pc belongs behind the site
    elsewhere // not in this slot
};

/// Outcome of finish_step.
enum class Stepped : std::uint8_t { done, again }; // again: the instruction is not complete (rep), step once more

/// One call of a function, as return probes know it.
struct Frame {
    VirtAddr sp; // x86: the address of the return address; arm64: sp at entry
    VirtAddr return_address;
    auto operator<=>(const Frame &) const = default;
};

/// When a frame is looked at: at the entry of a function, or at an address that calls return to.
enum class When : std::uint8_t { at_entry, at_return };

/// The call instruction that ends just before a return address.
struct CallBefore {
    std::uint8_t length = 0;
    std::optional<VirtAddr> target; // a direct call's; nothing: an indirect call
};

/// A register as the parser, --regs, DWARF evaluation and the man page know it.
struct RegisterInfo {
    enum class File : std::uint8_t { general, floating };
    std::string_view name;  // the kernel's pt_regs name: `ax`, `r8`, `x0`
    std::string_view alias; // the manufacturer's 64-bit name: `rax`; may be empty
    int dwarf;              // DWARF register number, -1: none
    File file;
    std::uint16_t offset; // in Registers or FpRegisters
    std::uint8_t width;   // bytes
};

/// The bytes of a vector register behind those that FpRegisters has.
struct UpperPart {
    std::uint16_t offset = 0; // in UpperRegisters
    std::uint8_t width = 0;   // bytes; 0: there are none
};

/// The range of one debug register.
struct WatchRegister {
    enum class When : std::uint8_t { write, access, execute };
    VirtAddr at;
    std::uint8_t length = 8; // 1, 2, 4, 8; `at` is a multiple of it
    When when = When::write;
};

/// The question of `-k SYMBOL+OFFSET`: may a probe be put at `offset` of this function?
struct Probeable {
    bool ok = false;
    const char *why = nullptr;                  // not ok: a clause for the user
    std::optional<std::uint64_t> before, after; // not on a boundary: the nearest offsets that are
};

/// Code that is copied into a target (recovery.h), and where its two entries are in it.
struct RecoveryCode {
    std::span<const std::byte> bytes;
    std::size_t handler = 0;  // the action for SIGTRAP
    std::size_t restorer = 0; // its return address
};

// clang-format off
template <class I>
concept InstructionSet = requires(
    typename I::Registers &regs, const typename I::Registers &cregs, const typename I::FpRegisters &cfp,
    const typename I::Plan &plan, const Placement &placed, Memory &memory, VirtAddr address, std::uint64_t number,
    std::span<const std::byte> code, unsigned n, const Frame &frame, When when, bool post, int signal,
    std::span<const value::Type *const> parameters, const value::Type *type) {
    { I::name } -> std::convertible_to<std::string_view>;
    { I::elf_machine } -> std::convertible_to<std::uint16_t>;              // EM_*
    { I::reach } -> std::convertible_to<std::uint64_t>;                    // a slot lies within this distance of its site
    { I::longest } -> std::convertible_to<std::size_t>;                    // bytes of the longest instruction
    // registers
    { I::registers() } -> std::same_as<std::span<const RegisterInfo>>;     // all, in the order of --regs
    { I::upper_part(number) } -> std::same_as<UpperPart>;                  // of the register with this DWARF number
    { I::pc(cregs) } -> std::same_as<VirtAddr>;
    { I::sp(cregs) } -> std::same_as<VirtAddr>;
    { I::set_pc(regs, address) };
    { I::stack_pointer_dwarf } -> std::convertible_to<int>;
    { I::frame_pointer_dwarf } -> std::convertible_to<int>;                // points at {the caller's frame pointer, the return address}
    // traps
    { I::trap_bytes() } -> std::same_as<std::span<const std::byte>>;       // the trap
    { I::trap_address(address) } -> std::same_as<VirtAddr>;                // pc of a trap stop → where the trap is
    // instructions
    { I::probeable(code, address, number) } -> std::same_as<Probeable>;    // function's bytes, its address, offset
    { I::plan(code, address) } -> std::same_as<typename I::Plan>;          // code: >= 1 instruction, up to `longest` bytes
    { I::place(plan, address, address) } -> std::same_as<Placement>;       // site, slot
    { I::emulate(plan, address, regs, memory) } -> std::same_as<Emulated>; // site; moves the pc
    // single steps (also a boosted or emulated instruction with a post handler may be asked: `place` says)
    { I::begin_step(placed, address, regs) } -> std::same_as<std::uint64_t>; // slot; sets pc and scratch, returns the scratch register's old value
    { I::finish_step(plan, placed, address, address, number, regs, memory) } -> std::same_as<Stepped>; // site, slot, old scratch
    { I::abort_step(placed, address, address, number, regs) };             // site, slot, old scratch: nothing has been done, back to the site
    { I::steps_itself(cregs) } -> std::same_as<bool>;                      // the program has each of its instructions end in a trap
    { I::step_itself(regs, true) };                                        // it does from now on, or no more
    { I::slot_position(placed, address, address) } -> std::same_as<SlotPosition>; // slot, pc
    { I::recovery_entry(plan, placed, address, address) } -> std::same_as<ktrace_recovery_entry>; // site, slot: how its trap is got over when the tracer was killed
    { I::fault_number(signal, post) } -> std::same_as<int>;                // the machine's number of the trap behind a signal (with an address?), for fault handlers
    { I::leave_slot_in_syscall(plan, address, regs) };                     // site; at the entry stop of Method::syscall: the pc goes behind the site
    // calls and returns
    { I::argument(cregs, memory, n) } -> std::same_as<std::optional<std::uint64_t>>; // nth integer argument, at a function's first instruction
    { I::return_value(cregs) } -> std::same_as<std::uint64_t>;             // of a function or a system call
    { I::set_return_value(regs, number) };
    { I::code_address(number) } -> std::same_as<VirtAddr>;                  // of a return address as functions save it: without a signature in it
    { I::return_address(cregs, memory) } -> std::same_as<std::optional<VirtAddr>>; // at a function's first instruction
    { I::return_at_once(regs, memory) } -> std::same_as<bool>;             // at a function's first instruction: as if it had returned; false: fault
    { I::frame(cregs, address) } -> std::same_as<Frame>;                   // at a function's first instruction; its return address
    { I::return_pop } -> std::convertible_to<std::int64_t>;                // bytes that a return takes off the stack: sp just after it is Frame::sp + this
    { I::frame_alive(frame, address, when) } -> std::same_as<bool>;        // sp of now, on the same stack
    { I::has_returned(cregs, frame, memory) } -> std::same_as<bool>;       // at the frame's return address, sp as after its return: it was a return that led there
    { I::is_on_stack(frame, memory) } -> std::same_as<bool>;               // where sp is above the frame: its return address is still where its function has saved it, so it may be on another stack
    { I::redirect_return(regs, memory, address) } -> std::same_as<bool>;   // for the in-process engine
    { I::signal_trampoline() } -> std::same_as<std::span<const std::byte>>; // the C library's code that signal handlers return to
    { I::interrupted(address, memory) } -> std::same_as<std::optional<typename I::Registers>>; // the stack pointer when a handler has returned to that: the registers that its signal has interrupted; nothing: call frame information says it, or memory cannot be read
    { I::thread_pointer(cregs) } -> std::same_as<std::optional<VirtAddr>>;  // nothing where it is not among the Registers
    { I::program_tls(number, number) } -> std::same_as<std::int64_t>;       // size, alignment of the program's own TLS block → its start, from the thread pointer
    { I::call_before(code, address) } -> std::same_as<std::optional<CallBefore>>; // the bytes up to a return address, and that address
    { I::go_argument(cregs) } -> std::same_as<std::uint64_t>;               // the first integer argument at the first instruction of a function of Go's own (ABIInternal)
    { I::longjmp_sp(cregs, memory) } -> std::same_as<std::optional<VirtAddr>>; // at the first instruction of longjmp: the stack pointer behind the call of setjmp; nothing: its buffer has no layout that is known
    { I::plt_target_slot(code, address) } -> std::same_as<std::optional<VirtAddr>>; // a PLT stub's bytes at address → the GOT slot it jumps through
    // the calling convention, for typed values at a function's first instruction and at its return
    { I::widest_vector(code) } -> std::same_as<std::uint64_t>;             // that this code of a function shows to be passed in one register, bytes
    { I::parameter_places(parameters, type) } -> std::same_as<std::vector<value::Place>>; // types of parameters, of the result (or void_)
    { I::result_place(type) } -> std::same_as<value::Place>;
    { I::go_result_places(parameters) } -> std::same_as<std::vector<value::Place>>; // types of all results of a function of Go's own (ABIInternal)
    // system calls made by a task on our behalf
    { I::syscall_bytes() } -> std::same_as<std::span<const std::byte>>;
    { I::set_syscall(regs, number, std::span<const std::uint64_t>{}) };    // number and up to six arguments
    { I::is_foreign_syscall(std::byte{}) } -> std::same_as<bool>;          // by its last byte: its number is of another set than SYS_*
    { I::own_syscall_number(number) } -> std::same_as<std::uint64_t>;      // of that other set → SYS_*, for calls that ktrace knows; no_syscall: none
    { I::interrupted_for_good(cregs) } -> std::same_as<bool>;              // a system call that can be restarted has just failed with EINTR
    { I::restart_syscall(regs, number) };                                  // its first argument: make that call once more, as the kernel restarts one
    { I::let_syscall_fail(regs) };                                         // it has failed: not interrupted_for_good any more
    { I::syscall_result(cregs) } -> std::same_as<std::int64_t>;            // -errno or the value
};
// clang-format on

} // namespace ktrace::arch
