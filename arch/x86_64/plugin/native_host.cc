// The host on x86-64.
#include <cstddef>

#include "arch/plugin_host.h"

#include <linux/ptrace.h>

// Registers as in struct pt_regs; xmm0-7 as FXSAVE has them, from byte 160 on (Intel SDM vol. 1, 10.5.1).
asm(R"(
.text
.globl ktrace_enter_function
.hidden ktrace_enter_function
.type ktrace_enter_function, @function
ktrace_enter_function:
    mov %rcx, %rsp
    mov %rdi, %r11
    mov %rsi, %rbx
    test %rdx, %rdx
    je 1f
    movdqu 160(%rdx), %xmm0
    movdqu 176(%rdx), %xmm1
    movdqu 192(%rdx), %xmm2
    movdqu 208(%rdx), %xmm3
    movdqu 224(%rdx), %xmm4
    movdqu 240(%rdx), %xmm5
    movdqu 256(%rdx), %xmm6
    movdqu 272(%rdx), %xmm7
1:  mov 0(%rbx), %r15
    mov 8(%rbx), %r14
    mov 16(%rbx), %r13
    mov 24(%rbx), %r12
    mov 32(%rbx), %rbp
    mov 56(%rbx), %r10
    mov 64(%rbx), %r9
    mov 72(%rbx), %r8
    mov 80(%rbx), %rax
    mov 88(%rbx), %rcx
    mov 96(%rbx), %rdx
    mov 104(%rbx), %rsi
    mov 112(%rbx), %rdi
    mov 40(%rbx), %rbx
    jmp *%r11
.size ktrace_enter_function, .-ktrace_enter_function
.globl ktrace_begin_program
.hidden ktrace_begin_program
.type ktrace_begin_program, @function
ktrace_begin_program:
    mov %rsi, %rsp
    xor %edx, %edx
    xor %ebp, %ebp
    jmp *%rdi
.size ktrace_begin_program, .-ktrace_begin_program
)");

namespace ktrace::arch {

namespace {

struct Pair {
    unsigned long pt_regs::*reg;
    int in_context;
};

constexpr Pair pairs[] = {
    {&pt_regs::r15, REG_R15}, {&pt_regs::r14, REG_R14},   {&pt_regs::r13, REG_R13}, {&pt_regs::r12, REG_R12},
    {&pt_regs::bp, REG_RBP},  {&pt_regs::bx, REG_RBX},    {&pt_regs::r11, REG_R11}, {&pt_regs::r10, REG_R10},
    {&pt_regs::r9, REG_R9},   {&pt_regs::r8, REG_R8},     {&pt_regs::ax, REG_RAX},  {&pt_regs::cx, REG_RCX},
    {&pt_regs::dx, REG_RDX},  {&pt_regs::si, REG_RSI},    {&pt_regs::di, REG_RDI},  {&pt_regs::ip, REG_RIP},
    {&pt_regs::sp, REG_RSP},  {&pt_regs::flags, REG_EFL},
};

constexpr greg_t write_fault = 2; // error code of a page fault (Intel SDM vol. 3, 4.7)

} // namespace

void from_context(const ucontext_t &context, pt_regs &into) {
    into = {};
    for (const Pair &pair : pairs)
        into.*pair.reg = static_cast<unsigned long>(context.uc_mcontext.gregs[pair.in_context]);
    into.orig_ax = ~0UL;
}

void to_context(const pt_regs &from, ucontext_t &context) {
    for (const Pair &pair : pairs) context.uc_mcontext.gregs[pair.in_context] = static_cast<greg_t>(from.*pair.reg);
}

std::uint64_t pc_of(const ucontext_t &context) {
    return static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
}

bool was_write(const ucontext_t &context) { return (context.uc_mcontext.gregs[REG_ERR] & write_fault) != 0; }

int trap_number(int, const ucontext_t &context) { return static_cast<int>(context.uc_mcontext.gregs[REG_TRAPNO]); }

} // namespace ktrace::arch
