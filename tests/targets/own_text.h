/* The executable segments of the program and its libraries: where its threads may be, if no tracer moves them. */
#ifndef OWN_TEXT_H
#define OWN_TEXT_H

#include <link.h>

static unsigned long text_low[64], text_high[64];
static int texts;

static int note_segments(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    for (int i = 0; i < info->dlpi_phnum && texts < 64; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
            text_low[texts] = info->dlpi_addr + p->p_vaddr;
            text_high[texts++] = info->dlpi_addr + p->p_vaddr + p->p_memsz;
        }
    }
    return 0;
}

/* Once, before is_own is asked. */
static inline void note_text(void) { dl_iterate_phdr(note_segments, 0); }

static inline int is_own(unsigned long pc) {
    for (int i = 0; i < texts; i++)
        if (pc >= text_low[i] && pc < text_high[i]) return 1;
    return 0;
}

#endif
