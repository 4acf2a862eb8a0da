/*
 * A process that pretends that a killed ktrace has left something in it, in several ways that no ktrace would: ktrace
 * must come to an end with it, and touch nothing but this process. Argument: the way. A line of input: it says how it
 * is; the end of input ends it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../arch/recovery.h"
#include "machine.h"

static volatile int calls;

__attribute__((noinline)) void do_work(void) { calls++; }

static struct ktrace_recovery_header *pretend(void) {
    struct ktrace_recovery_header *header =
        mmap(NULL, ktrace_recovery_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (header == MAP_FAILED) exit(2);
    memcpy(header->magic, KTRACE_RECOVERY_MAGIC, sizeof header->magic);
    header->abi = ktrace_recovery_abi;
    header->header_size = sizeof *header;
    header->entry_size = sizeof(struct ktrace_recovery_entry);
    header->size = ktrace_recovery_page;
    return header;
}

static void done(struct ktrace_recovery_header *header) {
    if (mprotect(header, ktrace_recovery_page, PROT_READ | PROT_EXEC)) exit(2);
}

/* Tables that overlap, of entries as large as they may be, all of them in use; and one as large as they get. */
static void many_entries(void) {
    struct ktrace_recovery_header *header = pretend();
    size_t small = (size_t)64 << 20, size = (size_t)1 << 32;
    unsigned char *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) exit(2);
    for (size_t at = 0; at < small; at += 4096) *(uint64_t *)(memory + at) = at + 1;
    if (mprotect(memory, size, PROT_READ | PROT_EXEC)) exit(2);
    header->entry_size = 4096;
    header->tables = ktrace_recovery_most_tables;
    for (uint32_t i = 0; i < header->tables; i++)
        header->table[i] = (struct ktrace_recovery_table){(uint64_t)(uintptr_t)memory, small / 4096};
    header->table[3].capacity = size / 4096;
    done(header);
}

/* All of the address space is slots, so that every thread is in one. */
static void slots_everywhere(void) {
    struct ktrace_recovery_header *header = pretend();
    header->arenas = 2;
    header->arena[0] = (struct ktrace_recovery_arena){4096, ((uint64_t)1 << 47) - 8192};
    header->arena[1] = (struct ktrace_recovery_arena){~(uint64_t)0 - 64, 4096};
    done(header);
}

static void *stay(void *code) {
    ((void (*)(void))code)();
    return NULL;
}

/* A thread that never leaves the page, as one in its handler would. */
static void stays_in_page(void) {
    struct ktrace_recovery_header *header = pretend();
    static const char loop[] = SELF_JUMP;
    unsigned char *code = (unsigned char *)header + 3000;
    memcpy(code, loop, sizeof loop);
    __builtin___clear_cache((char *)code, (char *)code + sizeof loop);
    done(header);
    pthread_t thread;
    if (pthread_create(&thread, NULL, stay, code)) exit(2);
}

/* Entries whose sites, slots and originals are nonsense. */
static void nonsense(void) {
    struct ktrace_recovery_header *header = pretend();
    struct ktrace_recovery_entry *entries = (struct ktrace_recovery_entry *)((char *)header + 2048);
    header->tables = 3;
    header->table[0] = (struct ktrace_recovery_table){(uint64_t)(uintptr_t)entries, 8};
    header->table[1] = (struct ktrace_recovery_table){~(uint64_t)0 - 8, 8};
    header->table[2] = (struct ktrace_recovery_table){0, (uint64_t)1 << 20};
    header->arenas = 1;
    header->arena[0] = (struct ktrace_recovery_arena){(uint64_t)(uintptr_t)entries, 64};
    for (int i = 0; i < 8; i++) {
        memset(&entries[i], 0xff - i, sizeof entries[i]);
        entries[i].site = (uint64_t)(uintptr_t)do_work + (uint64_t)i;
        entries[i].slot = i % 2 ? entries[i].site : (uint64_t)(uintptr_t)entries;
        entries[i].trap_size = i == 3 ? 255 : trap_size;
    }
    done(header);
}

/* As a ktrace of ABI 1 leaves it: code is where a later one has a field. */
static void older(void) {
    struct ktrace_recovery_header *header = pretend();
    header->abi = 1;
    header->header_size = KTRACE_RECOVERY_HEADER_1;
    memset((char *)header + KTRACE_RECOVERY_HEADER_1, 0x90, 64);
    done(header);
}

/* More pages than one ktrace after the other could have left. */
static void many_pages(void) {
    for (int i = 0; i < 3000; i++) done(pretend());
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    if (!strcmp(way, "entries")) many_entries();
    if (!strcmp(way, "slots")) slots_everywhere();
    if (!strcmp(way, "stays")) stays_in_page();
    if (!strcmp(way, "nonsense")) nonsense();
    if (!strcmp(way, "older")) older();
    if (!strcmp(way, "pages")) many_pages();
    puts("ready");
    fflush(stdout);
    for (int c; (c = getchar()) != EOF;) {
        if (c != '\n') continue;
        for (int i = 0; i < 10; i++) do_work();
        printf("calls %d\n", calls);
        fflush(stdout);
    }
    return 0;
}
