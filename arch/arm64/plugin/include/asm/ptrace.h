/* The registers of arm64, with the kernel's names. The system's <asm/ptrace.h> has other ones. */
#ifndef KTRACE_ASM_PTRACE_H
#define KTRACE_ASM_PTRACE_H

#include <linux/types.h>

struct pt_regs {
    u64 regs[31];
    u64 sp, pc, pstate;
    u64 orig_x0;
};

static inline unsigned long instruction_pointer(const struct pt_regs *regs) { return regs->pc; }
static inline void instruction_pointer_set(struct pt_regs *regs, unsigned long to) { regs->pc = to; }
static inline unsigned long user_stack_pointer(const struct pt_regs *regs) { return regs->sp; }
static inline unsigned long frame_pointer(const struct pt_regs *regs) { return regs->regs[29]; }
static inline long regs_return_value(const struct pt_regs *regs) { return (long)regs->regs[0]; }
static inline void regs_set_return_value(struct pt_regs *regs, unsigned long value) { regs->regs[0] = value; }
static inline unsigned long regs_get_kernel_argument(const struct pt_regs *regs, unsigned int n) {
    return n < 8 ? regs->regs[n] : 0;
}

#endif
