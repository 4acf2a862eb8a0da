// The functions in assembly, for what compilers seldom make, and the macros that they are written with. rdi and rsi are
// the numbers, rdx the memory.
#pragma once

#include "tests/isa/x86_64/detoured.h"

asm(R"(
    .macro function name:req, filler=0x90, alignment=4
    .p2align \alignment, \filler
    .globl \name
    .hidden \name
    .type \name, @function
\name:
    .macro end
    .size \name, . - \name
    .purgem end
    .endm
    .endm
)");

/// Those that are called from outside.
#define KT_DETOURED_ASSEMBLY(each)                                                                                     \
    each(switch) each(table_in_code) each(lock) each(prefixes) each(backwards) each(near_data) each(one) each(zero)    \
        each(calls) each(own_address) each(loops) each(flags) each(loaded_flags) each(red_zone) each(frame)            \
            each(parted) each(overlapping) each(never) each(numbers) each(vectors) each(no_memory)

#define KT_DECLARED(name) std::uint64_t detoured_##name(std::uint64_t, std::uint64_t, std::uint64_t *);
extern "C" {
KT_DETOURED_ASSEMBLY(KT_DECLARED)
}
#undef KT_DECLARED
