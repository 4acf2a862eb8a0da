/* The registers of the stopped thread, with the kernel's names. This is not the system's <linux/ptrace.h>: that one's
 * struct pt_regs has other names. */
#ifndef KTRACE_LINUX_PTRACE_H
#define KTRACE_LINUX_PTRACE_H

#include <asm/ptrace.h>

#define kernel_stack_pointer(regs) user_stack_pointer(regs)
#define profile_pc(regs) instruction_pointer(regs)
static inline int user_mode(const struct pt_regs *regs) {
    (void)regs;
    return 1;
}

#endif
