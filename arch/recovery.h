/*
 * The page of ours in a traced process, as bytes: what a SIGTRAP handler in the process, a guardian, and any later
 * ktrace read of it when the ktrace that wrote it was killed. C, since the handler is.
 *
 * The page is the start of an anonymous mapping that is readable and executable and never writable, as the mappings of
 * tables and slots are; it is written through /proc/PID/mem. It begins with this header; the handler's code follows,
 * then the first table. A table is an open-addressing hash of entries by site, without removal.
 *
 * Invariants: (1) at every instant what is there is consistent: an entry's site is written after the rest of it, a
 * table's address after its (zeroed) memory is there, `tables` and `arenas` after what they count; (2) an entry is
 * there before its trap is planted; (3) ABI n + 1 only appends: magic, sizes and the fields of ABI 1 keep their places,
 * so that every ktrace can take out what any other left.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#define KTRACE_RECOVERY_MAGIC "ktrace rescue\n\0" /* 16 bytes with the zero that ends it */

enum {
    ktrace_recovery_abi = 5,
    ktrace_recovery_most_tables = 16,
    ktrace_recovery_most_arenas = 64,
    ktrace_recovery_most_masks = 256,
    ktrace_recovery_most_jump_tables = 16,
    ktrace_recovery_page = 4096,
};

/* How the handler gets past an instruction whose trap no tracer serves. */
enum ktrace_recovery_kind {
    ktrace_recovery_slot = 0, /* on in its slot, at go_to */
    ktrace_recovery_jump,     /* the rest is done on the registers */
    ktrace_recovery_call,
    ktrace_recovery_branch,
    ktrace_recovery_loop,
    ktrace_recovery_loop_equal,
    ktrace_recovery_loop_not_equal,
    ktrace_recovery_branch_count_zero,
    ktrace_recovery_restart, /* no way is known: the trap's bytes are taken back by others, the task tries again */
    ktrace_recovery_word,    /* arm64: as the instruction in `original` says, on the registers */
};

/* One trap. Registers are numbered as in x86 instructions, -1: none; base 16: the pc. */
struct ktrace_recovery_entry {
    uint64_t site;       /* its address; 0: free */
    uint64_t slot;       /* start of the slot that holds the copy, 0: it has none */
    uint64_t go_to;      /* ktrace_recovery_slot: where the copy starts */
    uint8_t original[8]; /* what the trap's bytes have replaced */
    uint8_t trap_size;   /* bytes of that */
    uint8_t length;      /* of the original instruction */
    uint8_t copy_at;     /* in the slot: where the copy starts, and the first byte behind it */
    uint8_t copy_end;
    uint8_t kind;           /* enum ktrace_recovery_kind */
    uint8_t condition;      /* branch: the condition code */
    uint8_t address_size;   /* bytes: 8 or 4 */
    int8_t target_register; /* jump, call through a register */
    int8_t base, index;     /* jump, call through memory: [segment: base + index * scale + displacement] */
    uint8_t scale;          /* 0: not through memory */
    int8_t segment;         /* 4 fs, 5 gs, -1 none */
    uint8_t is_of_jump;     /* other bytes there count on the trap: others take it out, the handler does not */
    int64_t displacement;   /* of that operand */
    uint64_t target;        /* where a direct transfer goes */
};

struct ktrace_recovery_table {
    uint64_t address;
    uint64_t capacity; /* entries, a power of two; one is always free */
};

struct ktrace_recovery_arena {
    uint64_t address, size; /* of a mapping with slots */
};

/*
 * The signal mask of a task that is stepped, or was last: its signals are blocked in a step. In the table it is at
 * `tid` modulo the table's length; another task's may be written over it.
 */
struct ktrace_recovery_mask {
    uint64_t tid; /* in the process's own namespace */
    uint64_t mask;
};

/*
 * ABI 5. A jump in the place of a trap. The traps that belong to it, at the site and at places within, have entries of
 * their own; a trap is at the site before and behind the jump.
 */
struct ktrace_recovery_detour {
    uint64_t site;                /* its address; 0: free */
    uint8_t original[8], ours[8]; /* from there on */
    uint8_t size;                 /* bytes of the jump */
    uint8_t tail;                 /* bit n: byte n is the jump's alone, and no trap's */
    uint8_t unused[6];
};

/* Whose the process's action for SIGTRAP is. */
enum ktrace_recovery_installed {
    ktrace_recovery_not_ours = 0,
    ktrace_recovery_ours,    /* `ours`, in the place of `before` */
    ktrace_recovery_ours_was /* `before`, which the program has set in the place of `ours`: it may have kept that */
};

/* struct sigaction as the kernel has it on 64-bit machines. */
struct ktrace_recovery_action {
    uint64_t handler, flags, restorer, mask;
};

struct ktrace_recovery_header {
    char magic[16];
    uint32_t abi;         /* the highest of which all fields are there */
    uint32_t header_size; /* bytes of this struct, of one entry */
    uint32_t entry_size;
    uint32_t installed; /* enum ktrace_recovery_installed */
    uint64_t size;      /* bytes of the mapping that begins here */
    uint64_t tracer;    /* process id of the ktrace that wrote this, in its own namespace */
    struct ktrace_recovery_action before, ours;
    uint32_t tables, arenas;
    struct ktrace_recovery_table table[ktrace_recovery_most_tables];
    struct ktrace_recovery_arena arena[ktrace_recovery_most_arenas];
    /*
     * ABI 2. Stack pointer of a task that gets another signal in the place of a trap's SIGTRAP; 0: there is none.
     * Killed in between, the tracer leaves it a SIGTRAP that looks as if its parent had sent it (ptrace(2),
     * PTRACE_SETSIGINFO: the siginfo set there goes when the signal is another one).
     */
    uint64_t retold;
    /*
     * ABI 3. How many seccomp filters have let the page be made, and 1; 0: not known. Where there are more, one that
     * has come since may end the process for what would take the page out.
     */
    uint64_t filters;
    /*
     * ABI 4. Where ktrace_recovery_most_masks masks are; 0: nowhere. A task that comes to the handler behind a trap, or
     * by a step's end, with the mask that ktrace_recovery_blocked makes of its own, gets its own back.
     */
    uint64_t masks;
    /* ABI 5. Of struct ktrace_recovery_detour, in order of coming. */
    uint64_t jump_tables;
    struct ktrace_recovery_table jump_table[ktrace_recovery_most_jump_tables];
};

#define KTRACE_RECOVERY_HEADER_1 offsetof(struct ktrace_recovery_header, retold)      /* bytes of it in ABI 1 */
#define KTRACE_RECOVERY_HEADER_2 offsetof(struct ktrace_recovery_header, filters)     /* in ABI 2 */
#define KTRACE_RECOVERY_HEADER_3 offsetof(struct ktrace_recovery_header, masks)       /* in ABI 3 */
#define KTRACE_RECOVERY_HEADER_4 offsetof(struct ktrace_recovery_header, jump_tables) /* in ABI 4 */

/* Where the search for a site begins. */
static inline uint64_t ktrace_recovery_hash(uint64_t site, uint64_t capacity) {
    return (site * 0x9e3779b97f4a7c15ULL >> 32) & (capacity - 1);
}

/*
 * The mask of a task while it is stepped that has this one: all are blocked but those that an instruction raises, and
 * the two that cannot be.
 */
static inline uint64_t ktrace_recovery_blocked(uint64_t mask) {
    const uint64_t one = 1, raised = one << (SIGILL - 1) | one << (SIGTRAP - 1) | one << (SIGBUS - 1) |
                                     one << (SIGFPE - 1) | one << (SIGSEGV - 1) | one << (SIGSYS - 1);
    return (mask | ~raised) & ~(one << (SIGKILL - 1) | one << (SIGSTOP - 1));
}

/*
 * The tracer marks a trap's siginfo so (si_errno), with the new pc in si_addr, before it moves a task to an address
 * right behind a site: what the handler would take for a new trap there.
 */
enum { ktrace_recovery_moved = 0x6b74 };
