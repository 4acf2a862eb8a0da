/*
 * The SIGTRAP handler that runs inside a traced process once the ktrace that planted its traps was killed: it takes out
 * each trap that a task comes to, or, where that cannot be done, carries the task over the instruction under it, as
 * ktrace did. It drops the single steps and hardware breakpoints that are left over. And the place where tasks make
 * system calls for ktrace.
 *
 * This code is copied into the process (lib/recovery/page.cc) behind the header of arch/recovery.h, in the same page.
 * So all of it lies in one section, refers to nothing outside of it, has no data, and needs no library. It keeps no
 * state: it may be interrupted by itself, and any number of threads may run it. CMakeLists.txt has the flags it is
 * compiled with; tests/isa/x86_64/recovery_test.cc runs a copy of it.
 */
#include <ucontext.h>

#include "recovery_handler.h"

/* Bits of the flags register (Intel SDM vol. 1, 3.4.3). */
enum { flag_carry = 1, flag_parity = 4, flag_zero = 0x40, flag_sign = 0x80, flag_trap = 0x100, flag_overflow = 0x800 };
enum { segment_fs = 4, segment_gs = 5, base_is_pc = 16, int3 = 0xcc, page_size = 4096 };

PART long syscall4(long number, long a, long b, long c, long d) {
    register long r10 __asm__("r10") = d;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}

/* The page that this code was copied into. */
PART const struct ktrace_recovery_header *own_header(void) {
    uint64_t here;
    __asm__("lea 0(%%rip), %0" : "=r"(here));
    return (const struct ktrace_recovery_header *)(here & ~(uint64_t)(page_size - 1));
}

/* The register of the context with the encoding's number 0-15: gregset_t has r8-r15, di, si, bp, bx, dx, ax, cx, sp. */
PART greg_t *general(ucontext_t *context, int number) {
    return &context->uc_mcontext.gregs[0x7654321089afbcedULL >> (4 * number) & 15];
}

PART uint64_t load(uint64_t address, int segment) {
    uint64_t value;
    if (segment == segment_fs)
        __asm__ volatile("movq %%fs:(%1), %0" : "=r"(value) : "r"(address) : "memory");
    else if (segment == segment_gs)
        __asm__ volatile("movq %%gs:(%1), %0" : "=r"(value) : "r"(address) : "memory");
    else
        value = *(const volatile uint64_t *)address;
    return value;
}

/* Where a jump or call goes (SDM vol. 1, 3.7.5 for operands in memory). */
PART uint64_t transfer_target(const struct ktrace_recovery_entry *entry, ucontext_t *context, uint64_t next) {
    if (entry->target_register >= 0) return (uint64_t)*general(context, entry->target_register);
    if (entry->scale == 0) return entry->target;
    uint64_t address = (uint64_t)entry->displacement;
    if (entry->base == base_is_pc)
        address += next;
    else if (entry->base >= 0)
        address += (uint64_t)*general(context, entry->base);
    if (entry->index >= 0) address += (uint64_t)*general(context, entry->index) * entry->scale;
    if (entry->address_size == 4) address = (uint32_t)address;
    return load(address, entry->segment);
}

PART int condition_holds(unsigned condition, uint64_t flags) {
    int less = !(flags & flag_sign) != !(flags & flag_overflow);
    int holds = 0;
    if (condition >> 1 == 0) holds = (flags & flag_overflow) != 0;
    if (condition >> 1 == 1) holds = (flags & flag_carry) != 0;
    if (condition >> 1 == 2) holds = (flags & flag_zero) != 0;
    if (condition >> 1 == 3) holds = (flags & (flag_carry | flag_zero)) != 0;
    if (condition >> 1 == 4) holds = (flags & flag_sign) != 0;
    if (condition >> 1 == 5) holds = (flags & flag_parity) != 0;
    if (condition >> 1 == 6) holds = less;
    if (condition >> 1 == 7) holds = less || (flags & flag_zero) != 0;
    return holds != (int)(condition & 1);
}

/* loop, loope, loopne, jrcxz: counts cx down where the instruction does. */
PART int count_branch_taken(const struct ktrace_recovery_entry *entry, ucontext_t *context, uint64_t flags) {
    greg_t *cx = general(context, 1);
    uint64_t mask = entry->address_size == 4 ? 0xffffffffULL : ~0ULL;
    if (entry->kind == ktrace_recovery_branch_count_zero) return ((uint64_t)*cx & mask) == 0;
    *cx = (greg_t)(((uint64_t)*cx - 1) & mask);
    if (*cx == 0) return 0;
    if (entry->kind == ktrace_recovery_loop_equal) return (flags & flag_zero) != 0;
    if (entry->kind == ktrace_recovery_loop_not_equal) return (flags & flag_zero) == 0;
    return 1;
}

/* The pc after the instruction under the trap, or in its slot. */
PART uint64_t step_over(const struct ktrace_recovery_entry *entry, ucontext_t *context) {
    uint64_t next = entry->site + entry->length;
    uint64_t flags = (uint64_t)context->uc_mcontext.gregs[REG_EFL];
    if (entry->kind == ktrace_recovery_slot) return entry->go_to;
    if (entry->kind == ktrace_recovery_jump) return transfer_target(entry, context, next);
    if (entry->kind == ktrace_recovery_call) {
        uint64_t target = transfer_target(entry, context, next);
        greg_t *sp = general(context, 4);
        *sp -= 8;
        *(volatile uint64_t *)*sp = next; /* in the red zone, which this handler's frame lies below */
        return target;
    }
    if (entry->kind == ktrace_recovery_branch) return condition_holds(entry->condition, flags) ? entry->target : next;
    if (entry->kind < ktrace_recovery_restart) return count_branch_taken(entry, context, flags) ? entry->target : next;
    return entry->site;
}

/* As put_back. */
IN_PAGE static int take_out(const struct ktrace_recovery_header *header, const struct ktrace_recovery_entry *entry) {
    return put_back(header, entry, int3, 1);
}

PART int is_mapped(uint64_t address) {
    unsigned char resident;
    return syscall4(SYS_mincore, (long)(address & ~(uint64_t)(page_size - 1)), page_size, (long)&resident, 0) == 0;
}

/* Is a trap of the program's own (int3, int $3) right before the pc? */
PART int is_own_trap(uint64_t pc) {
    const volatile unsigned char *code = (const volatile unsigned char *)pc;
    unsigned offset = pc & (page_size - 1);
    if (offset < 2 && !is_mapped(pc - 2)) return 0;
    return code[-1] == int3 || (code[-2] == 0xcd && code[-1] == 3);
}

IN_PAGE void ktrace_recovery_handler(int signal, siginfo_t *info, ucontext_t *context) {
    const struct ktrace_recovery_header *header = own_header();
    greg_t *pc = &context->uc_mcontext.gregs[REG_RIP];
    (void)signal;
    if (info->si_code <= 0) {
        if (info->si_code != SI_USER || header->retold != (uint64_t)*general(context, 4)) handle_sent(header);
        return;
    }
    if (info->si_code == TRAP_TRACE || info->si_code == TRAP_HWBKPT) {
        context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)flag_trap;
        give_back_mask(header, context);
        return;
    }
    if (info->si_errno == ktrace_recovery_moved && (greg_t)info->si_addr == *pc) {
        give_back_mask(header, context);
        return;
    }
    uint64_t at = (uint64_t)*pc - 1;
    const struct ktrace_recovery_entry *entry = find(header, at);
    if (entry) {
        /* Once the trap is out, the instruction is there again. */
        int planted = *(const volatile unsigned char *)at == int3 && !take_out(header, entry);
        *pc = (greg_t)(planted ? step_over(entry, context) : at);
    } else if (is_own_trap((uint64_t)*pc)) {
        take_default_action();
        *pc -= *(const volatile unsigned char *)at == int3 ? 1 : 2; /* it traps once more, and ends there */
    } else { /* the tracer had served this trap and moved the task on when it was killed */
        give_back_mask(header, context);
    }
}

/* The code that the handler returns to: unwinders know a signal's frame by these very bytes (mov $15, %rax; syscall).
 */
__asm__(".pushsection ktrace_recovery, \"ax\", @progbits\n"
        ".globl ktrace_recovery_restorer\n"
        ".balign 16\n"
        "nop\n" /* unwinders look at the byte before the return address */
        "ktrace_recovery_restorer:\n"
        ".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05\n"
        "jmp ktrace_recovery_restorer\n" /* it was sent back to the program (PR_SET_SYSCALL_USER_DISPATCH) */
        ".popsection\n");

/*
 * A task that makes a system call for ktrace makes it here. When ktrace lives it takes the task away behind the call.
 * When it was killed meanwhile, the task goes on by itself as if a signal's handler returned: behind this page is the
 * frame with all that it was. The stack is the task's own up to then, for a SIGTRAP that was to be delivered.
 */
__asm__(".pushsection ktrace_recovery, \"ax\", @progbits\n"
        ".globl ktrace_recovery_syscall\n"
        ".balign 16\n"
        "ktrace_recovery_syscall:\n"
        "syscall\n"
        "ktrace_recovery_return:\n"
        "lea 0(%rip), %rsp\n"
        "and $-4096, %rsp\n"
        "add $4096, %rsp\n"
        "mov $15, %eax\n" /* rt_sigreturn */
        "syscall\n"
        "jmp ktrace_recovery_return\n" /* as above */
        ".popsection\n");
