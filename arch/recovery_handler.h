/*
 * The SIGTRAP handlers of all instruction sets (NAME/recovery_handler.c) have this in common: the entry of a trap, the
 * default action, the mask of a step, and the system calls by which a trap is taken out. Only they include it.
 *
 * It is compiled into the handler's own section, or into its functions: it refers to nothing outside, has no data, and
 * needs no library.
 */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "recovery.h"

#define PART static inline __attribute__((always_inline))
#define IN_PAGE __attribute__((section("ktrace_recovery"), used, noinline))

_Static_assert(sizeof(struct ktrace_recovery_entry) == 64, "entries are 64 bytes in ABI 1");

/* Makes a system call, and gives its result. Each instruction set has its own. */
PART long syscall4(long number, long a, long b, long c, long d);

/* The entry of the trap at `site`; NULL: there is none. */
PART const struct ktrace_recovery_entry *find(const struct ktrace_recovery_header *header, uint64_t site) {
    for (uint32_t i = 0; i < header->tables && i < ktrace_recovery_most_tables; i++) {
        const struct ktrace_recovery_entry *table = (const struct ktrace_recovery_entry *)header->table[i].address;
        uint64_t capacity = header->table[i].capacity;
        for (uint64_t at = ktrace_recovery_hash(site, capacity);; at = (at + 1) & (capacity - 1)) {
            uint64_t found = *(const volatile uint64_t *)&table[at].site;
            if (found == site) return &table[at];
            if (found == 0) break;
        }
    }
    return NULL;
}

/* The path is three words, so that it is no data. */
PART long open_path(uint64_t first, uint64_t second, uint64_t third, long flags) {
    volatile uint64_t path[3];
    path[0] = first;
    path[1] = second;
    path[2] = third;
    return syscall4(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0);
}

/* No seccomp filter judges what is done here: one might end the process for it. */
PART int is_free_to_call(const struct ktrace_recovery_header *header) {
    return header->filters == 1 && syscall4(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0) <= 0;
}

/* By /proc/self/status. A thread may be untraced while its process is traced (clone(2), CLONE_UNTRACED). */
IN_PAGE static int is_traced(void) {
    const uint32_t line = 0x6172540a; /* \nTra, of TracerPid: */
    enum { number_at = 12 };
    char text[256];
    long file = open_path(0x65732f636f72702f, 0x75746174732f666c, 0x73, O_RDONLY); /* /proc/self/status */
    if (file < 0) return 1;
    long size = syscall4(SYS_read, file, (long)text, sizeof text, 0);
    syscall4(SYS_close, file, 0, 0, 0);
    for (long i = 0; i + number_at < size; i++)
        if (*(const volatile uint32_t *)(text + i) == line) return text[i + number_at] != '0';
    return 1;
}

/* Puts the instruction back in the place of the trap, which is `size` bytes. False: it may not, or cannot. */
PART int put_back(const struct ktrace_recovery_header *header, const struct ktrace_recovery_entry *entry, uint32_t trap,
                  long size) {
    uint32_t now = 0;
    if (entry->is_of_jump || entry->trap_size != size || !is_free_to_call(header) || is_traced()) return 0;
    /* /proc/thread-self/mem */
    long memory = open_path(0x68742f636f72702f, 0x6c65732d64616572, 0x6d656d2f66, O_RDWR);
    if (memory < 0) return 0;
    long site = (long)entry->site;
    int is_there = syscall4(SYS_pread64, memory, (long)&now, size, site) == size && now == trap;
    int is_out = is_there && syscall4(SYS_pwrite64, memory, (long)entry->original, size, site) == size;
    syscall4(SYS_close, memory, 0, 0, 0);
    return is_out;
}

/* As the kernel would have done had this handler not been there: the process ends by SIGTRAP. */
PART void take_default_action(void) {
    volatile struct ktrace_recovery_action action;
    action.handler = action.flags = action.restorer = action.mask = 0;
    syscall4(SYS_rt_sigaction, SIGTRAP, (long)&action, 0, 8);
}

/* For signals that `kill` sends. */
PART void handle_sent(const struct ktrace_recovery_header *header) {
    if (header->before.handler == 1 /* SIG_IGN */) return;
    take_default_action();
    syscall4(SYS_tgkill, syscall4(SYS_getpid, 0, 0, 0, 0), syscall4(SYS_gettid, 0, 0, 0, 0), SIGTRAP, 0);
}

/*
 * The tracer was killed while the task was stepped, or about to be: its own mask, in place of the step's, is what it
 * has when this handler returns.
 */
PART void give_back_mask(const struct ktrace_recovery_header *header, ucontext_t *context) {
    uint64_t *now = (uint64_t *)&context->uc_sigmask; /* the kernel has but these 64 bits there */
    if (header->masks == 0 || *now != ktrace_recovery_blocked(*now)) return;
    uint64_t tid = (uint64_t)syscall4(SYS_gettid, 0, 0, 0, 0);
    const struct ktrace_recovery_mask *own =
        (const struct ktrace_recovery_mask *)header->masks + tid % ktrace_recovery_most_masks;
    if (own->tid == tid && *now == ktrace_recovery_blocked(own->mask)) *now = own->mask;
}
