/*
 * The action for SIGTRAP in a traced process: gets over traps that no tracer serves, ends the process by traps of its
 * own as the kernel would have, and takes out what are breakpoints that are left over. And the place where tasks make
 * system calls for ktrace.
 *
 * This code is copied into the process (lib/recovery/page.cc) behind the header of arch/recovery.h, in the same page.
 * So all of it lies in one section, refers to nothing outside of it, has no data, and needs no library. It keeps no
 * state: it may be interrupted by itself, and any number of threads may run it. CMakeLists.txt has the flags it is
 * compiled with.
 */
#include <ucontext.h>

#include "recovery_handler.h"

enum { page_size = 4096, trap_size = 4, link_register = 30, zero_register = 31 };
enum { btype_shift = 10, btype_jump = 1, btype_call = 2 }; /* of pstate: what br and blr leave for the landing pad */

#define OUR_TRAP (0xd4200000u | 0x6b74u << 5) /* Arm64::trap_bytes */

PART long syscall4(long number, long a, long b, long c, long d) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory", "cc");
    return x0;
}

/* The page that this code was copied into. */
PART const struct ktrace_recovery_header *own_header(void) {
    uint64_t here;
    __asm__("adr %0, ." : "=r"(here));
    return (const struct ktrace_recovery_header *)(here & ~(uint64_t)(page_size - 1));
}

PART uint32_t field(uint32_t word, unsigned low, unsigned bits) { return word >> low & ((1u << bits) - 1); }

PART int64_t extended(uint32_t value, unsigned bits) {
    int64_t sign = (int64_t)1 << (bits - 1);
    return ((int64_t)value ^ sign) - sign;
}

PART uint64_t get(const mcontext_t *context, unsigned number) {
    return number == zero_register ? 0 : context->regs[number];
}

PART void set(mcontext_t *context, unsigned number, uint64_t value) {
    if (number != zero_register) context->regs[number] = value;
}

PART int condition_holds(unsigned condition, uint64_t flags) {
    int n = (int)(flags >> 31 & 1), z = (int)(flags >> 30 & 1), c = (int)(flags >> 29 & 1), v = (int)(flags >> 28 & 1);
    int holds = 1;
    if (condition >> 1 == 0) holds = z;
    if (condition >> 1 == 1) holds = c;
    if (condition >> 1 == 2) holds = n;
    if (condition >> 1 == 3) holds = v;
    if (condition >> 1 == 4) holds = c && !z;
    if (condition >> 1 == 5) holds = n == v;
    if (condition >> 1 == 6) holds = n == v && !z;
    return condition >> 1 == 7 || holds != (int)(condition & 1);
}

/* b.cond, cbz, cbnz, tbz, tbnz: is it taken? */
PART int is_taken(uint32_t word, const mcontext_t *context) {
    uint64_t value = get(context, field(word, 0, 5));
    int negated = (int)field(word, 24, 1);
    if (word >> 24 == 0x54) return condition_holds(field(word, 0, 4), context->pstate);
    if ((word & 0x7e000000) == 0x34000000) return ((word >> 31 ? value : (uint32_t)value) != 0) == negated;
    return (int)(value >> (field(word, 31, 1) << 5 | field(word, 19, 5)) & 1) == negated;
}

/* A load of a literal to a general register; prfm loads nothing. */
PART void load_literal(uint32_t word, uint64_t from, mcontext_t *context) {
    unsigned kind = word >> 30;
    if (kind == 0) set(context, field(word, 0, 5), *(const volatile uint32_t *)from);
    if (kind == 1) set(context, field(word, 0, 5), *(const volatile uint64_t *)from);
    if (kind == 2) set(context, field(word, 0, 5), (uint64_t)(int64_t) * (const volatile int32_t *)from);
}

/* A branch to a register drops the tag in its top byte. */
PART uint64_t branch_address(uint64_t value) {
    const uint64_t top = 0xffULL << 56;
    return value >> 55 & 1 ? value | top : value & ~top;
}

/* The effects of an instruction that Arm64::plan emulates, and the pc behind it. */
PART uint64_t emulate(uint32_t word, uint64_t site, mcontext_t *context) {
    uint64_t next = site + 4, immediate = (uint64_t)extended(field(word, 5, 19), 19);
    unsigned rd = field(word, 0, 5);
    uint64_t btype = 0;
    if ((word & 0x1f000000) == 0x10000000) { /* adr, adrp */
        uint64_t distance = immediate << 2 | field(word, 29, 2);
        set(context, rd, word >> 31 ? (site & ~(uint64_t)0xfff) + (distance << 12) : site + distance);
    } else if ((word & 0x7c000000) == 0x14000000) { /* b, bl */
        if (word >> 31) set(context, link_register, next);
        next = site + ((uint64_t)extended(field(word, 0, 26), 26) << 2);
    } else if ((word & 0xffdffc1f) == 0xd61f0000) { /* br, blr */
        uint64_t target = branch_address(get(context, field(word, 5, 5)));
        int links = (int)field(word, 21, 1);
        if (links) set(context, link_register, next);
        next = target;
        btype = links ? btype_call : btype_jump;
    } else if ((word & 0x3b000000) == 0x18000000) { /* ldr, ldrsw, prfm of a literal */
        load_literal(word, site + (immediate << 2), context);
    } else if ((word & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
        if (is_taken(word, context)) next = site + ((uint64_t)extended(field(word, 5, 14), 14) << 2);
    } else if (is_taken(word, context)) {
        next = site + (immediate << 2);
    }
    context->pstate = (context->pstate & ~(3ULL << btype_shift)) | btype << btype_shift;
    return next;
}

PART uint32_t original_of(const struct ktrace_recovery_entry *entry) { return *(const uint32_t *)entry->original; }

/* The pc after the instruction under the trap, or in its slot. */
PART uint64_t step_over(const struct ktrace_recovery_entry *entry, mcontext_t *context) {
    if (entry->kind == ktrace_recovery_slot) return entry->go_to;
    if (entry->kind == ktrace_recovery_word) return emulate(original_of(entry), entry->site, context);
    return entry->site;
}

PART int is_ours(uint64_t at) { return *(const volatile uint32_t *)at == OUR_TRAP; }

/* As put_back. */
IN_PAGE static int take_out(const struct ktrace_recovery_header *header, const struct ktrace_recovery_entry *entry) {
    return put_back(header, entry, OUR_TRAP, trap_size);
}

IN_PAGE void ktrace_recovery_handler(int signal, siginfo_t *info, ucontext_t *context) {
    const struct ktrace_recovery_header *header = own_header();
    mcontext_t *at = &context->uc_mcontext;
    (void)signal;
    if (info->si_code <= 0) {
        if (info->si_code != SI_USER || header->retold != at->sp) handle_sent(header);
        return;
    }
    if (info->si_code == TRAP_TRACE || info->si_code == TRAP_HWBKPT) {
        give_back_mask(header, context);
        return;
    }
    if (info->si_errno == ktrace_recovery_moved && (uint64_t)info->si_addr == at->pc) {
        give_back_mask(header, context);
        return;
    }
    /* The pc is at the trap that was hit, or where the tracer has moved the task on when it was killed. */
    const struct ktrace_recovery_entry *entry = find(header, at->pc);
    if (entry && (uint64_t)info->si_addr == at->pc) {
        /* Once the trap is out, the instruction is there again. */
        if (is_ours(at->pc) && !take_out(header, entry)) at->pc = step_over(entry, at);
    } else if (!entry && (uint64_t)info->si_addr == at->pc) {
        take_default_action(); /* one of its own: it traps once more, and ends there */
    } else {
        give_back_mask(header, context);
    }
}

/* The code that the handler returns to: unwinders know a signal's frame by these very bytes. */
__asm__(".pushsection ktrace_recovery, \"ax\", @progbits\n"
        ".globl ktrace_recovery_restorer\n"
        ".balign 16\n"
        "nop\n" /* unwinders look at the byte before the return address */
        "ktrace_recovery_restorer:\n"
        "mov x8, #139\n"
        "svc #0\n"
        "b ktrace_recovery_restorer\n" /* it was sent back to the program (PR_SET_SYSCALL_USER_DISPATCH) */
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
        "svc #0\n"
        "ktrace_recovery_return:\n"
        "adr x9, .\n"
        "and x9, x9, #0xfffffffffffff000\n"
        "add x9, x9, #4096\n"
        "mov sp, x9\n"
        "mov x8, #139\n" /* rt_sigreturn */
        "svc #0\n"
        "b ktrace_recovery_return\n" /* as above */
        ".popsection\n");
