/* The machine, as far as plugins of these tests depend on it: the number of a page fault, a read through a register
 * that a fault_handler can change, the return from a function that has not run. */
#ifndef MACHINE_H
#define MACHINE_H

#include <linux/ptrace.h>

#ifdef CONFIG_X86

static inline int is_page_fault(int trap) { return trap == 14; }

/* The value there. */
static inline int read_through(unsigned long from) {
    int value = 0;
    __asm__ volatile("movl (%%rcx), %0" : "+a"(value), "+c"(from));
    return value;
}
/* A fault_handler's: it reads from there. */
static inline void read_from(struct pt_regs *regs, const int *from) { regs->cx = (unsigned long)from; }

static inline void set_first_argument(struct pt_regs *regs, unsigned long value) { regs->di = value; }

/* At a function's first instruction. */
static inline void return_at_once(struct pt_regs *regs) {
    regs->ip = *(unsigned long *)regs->sp;
    regs->sp += sizeof(long);
}

#else

static inline int is_page_fault(int trap) { return trap == 0x24; } /* a data abort */

static inline int read_through(unsigned long from) {
    register unsigned long at __asm__("x9") = from;
    int value = 0;
    __asm__ volatile("ldr %w0, [x9]" : "+&r"(value), "+r"(at));
    return value;
}
static inline void read_from(struct pt_regs *regs, const int *from) { regs->regs[9] = (unsigned long)from; }

static inline void set_first_argument(struct pt_regs *regs, unsigned long value) { regs->regs[0] = value; }

static inline void return_at_once(struct pt_regs *regs) { regs->pc = regs->regs[30]; }

#endif

/* `page fault`, or the number of another trap. */
static inline const char *trap_name(int trap) {
    static char other[16];
    if (is_page_fault(trap)) return "page fault";
    snprintf(other, sizeof other, "trap %d", trap);
    return other;
}

#endif
