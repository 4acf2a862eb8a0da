// The part of a plugin host (lib/plugin/host) that depends on the machine: plugin/native_host.cc of each. It belongs to
// that program, not to ktrace.
#pragma once

#include <cstdint>

#include <ucontext.h>

struct pt_regs;

namespace ktrace::arch {

/// Jumps to a program's first instruction with its stack set up as the kernel does (psABI: process initialization).
[[noreturn]] void begin_program(std::uint64_t entry, std::uint64_t stack) asm("ktrace_begin_program");

/// Jumps to `function` with the argument registers of `registers` (and, where not nullptr, of `floating`, laid out as
/// ptrace has them) and the stack pointer at `stack`. It is left by a longjmp.
[[noreturn]] void enter_function(const void *function, const pt_regs *registers, const std::byte *floating,
                                 std::byte *stack) asm("ktrace_enter_function");

/// The registers of a thread that was interrupted by a signal, and back.
void from_context(const ucontext_t &context, pt_regs &into);
void to_context(const pt_regs &from, ucontext_t &context);
std::uint64_t pc_of(const ucontext_t &context);

/// Was it a write that faulted?
bool was_write(const ucontext_t &context);

/// The machine's number of the trap behind a signal: x86: 0 divide, 3 breakpoint, 6 opcode, 13 protection, 14 page;
/// arm64: the exception class, as Host::fault_number has it.
int trap_number(int signal, const ucontext_t &context);

} // namespace ktrace::arch
