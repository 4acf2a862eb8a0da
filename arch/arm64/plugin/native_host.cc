// The host on arm64.
#include <csignal>
#include <cstddef>
#include <cstring>

#include "arch/plugin_host.h"

#include <linux/ptrace.h>

#include <asm/sigcontext.h>

// Registers as in struct pt_regs; v0-7 as in struct user_fpsimd_state, from its start on.
asm(R"(
.text
.globl ktrace_enter_function
.hidden ktrace_enter_function
.type ktrace_enter_function, @function
ktrace_enter_function:
    mov sp, x3
    mov x16, x0
    mov x17, x1
    cbz x2, 1f
    ldp q0, q1, [x2]
    ldp q2, q3, [x2, #32]
    ldp q4, q5, [x2, #64]
    ldp q6, q7, [x2, #96]
1:  ldp x0, x1, [x17]
    ldp x2, x3, [x17, #16]
    ldp x4, x5, [x17, #32]
    ldp x6, x7, [x17, #48]
    ldr x8, [x17, #64]
    ldp x29, x30, [x17, #232]
    br x16
.size ktrace_enter_function, .-ktrace_enter_function
.globl ktrace_begin_program
.hidden ktrace_begin_program
.type ktrace_begin_program, @function
ktrace_begin_program:
    mov sp, x1
    mov x16, x0
    mov x0, #0
    mov x29, #0
    mov x30, #0
    br x16
.size ktrace_begin_program, .-ktrace_begin_program
)");

namespace ktrace::arch {

namespace {

constexpr std::uint64_t written = 1 << 6; // WnR (Arm ARM, ISS of a data abort)

/// The syndrome of the fault behind a signal, from the records behind its registers; 0: there is none.
std::uint64_t syndrome(const ucontext_t &context) {
    const auto *at = reinterpret_cast<const std::byte *>(context.uc_mcontext.__reserved);
    const std::byte *end = at + sizeof context.uc_mcontext.__reserved;
    while (at + sizeof(_aarch64_ctx) <= end) {
        _aarch64_ctx head;
        std::memcpy(&head, at, sizeof head);
        if (head.magic == 0 || head.size < sizeof head) return 0;
        if (head.magic == ESR_MAGIC) {
            esr_context found;
            std::memcpy(&found, at, sizeof found);
            return found.esr;
        }
        at += head.size;
    }
    return 0;
}

} // namespace

void from_context(const ucontext_t &context, pt_regs &into) {
    into = {};
    for (std::size_t n = 0; n < 31; ++n) into.regs[n] = context.uc_mcontext.regs[n];
    into.sp = context.uc_mcontext.sp;
    into.pc = context.uc_mcontext.pc;
    into.pstate = context.uc_mcontext.pstate;
    into.orig_x0 = ~0ULL;
}

void to_context(const pt_regs &from, ucontext_t &context) {
    for (std::size_t n = 0; n < 31; ++n) context.uc_mcontext.regs[n] = from.regs[n];
    context.uc_mcontext.sp = from.sp;
    context.uc_mcontext.pc = from.pc;
    context.uc_mcontext.pstate = from.pstate;
}

std::uint64_t pc_of(const ucontext_t &context) { return context.uc_mcontext.pc; }

bool was_write(const ucontext_t &context) { return (syndrome(context) & written) != 0; }

int trap_number(int signal, const ucontext_t &context) {
    constexpr int class_at = 26; // Arm ARM, ESR_ELx.EC
    if (const std::uint64_t known = syndrome(context); known != 0) return static_cast<int>(known >> class_at);
    return signal == SIGTRAP ? 0x3c : signal == SIGFPE ? 0x2c : 0;
}

} // namespace ktrace::arch
