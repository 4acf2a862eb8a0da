/* The registers of x86-64, with the kernel's names. The system's <asm/ptrace.h> has other ones. */
#ifndef KTRACE_ASM_PTRACE_H
#define KTRACE_ASM_PTRACE_H

#include <linux/types.h>

struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx;
    unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
    unsigned long orig_ax, ip, cs, flags, sp, ss;
};

static inline unsigned long instruction_pointer(const struct pt_regs *regs) { return regs->ip; }
static inline void instruction_pointer_set(struct pt_regs *regs, unsigned long to) { regs->ip = to; }
static inline unsigned long user_stack_pointer(const struct pt_regs *regs) { return regs->sp; }
static inline unsigned long frame_pointer(const struct pt_regs *regs) { return regs->bp; }
static inline long regs_return_value(const struct pt_regs *regs) { return (long)regs->ax; }
static inline void regs_set_return_value(struct pt_regs *regs, unsigned long value) { regs->ax = value; }
/* The nth integer argument (from 0) at a function's entry, of those in registers. */
static inline unsigned long regs_get_kernel_argument(const struct pt_regs *regs, unsigned int n) {
    switch (n) {
    case 0: return regs->di;
    case 1: return regs->si;
    case 2: return regs->dx;
    case 3: return regs->cx;
    case 4: return regs->r8;
    case 5: return regs->r9;
    default: return 0;
    }
}

#endif
