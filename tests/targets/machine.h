/* The machine, as far as programs of these tests depend on it: registers in a handler's context, single instructions.
 */
#pragma once

#include <ucontext.h>

#if defined(__x86_64__)
#define PC_OF(context) ((context)->uc_mcontext.gregs[REG_RIP])
#define SP_OF(context) ((context)->uc_mcontext.gregs[REG_RSP])
#define FLAGS_OF(context) ((context)->uc_mcontext.gregs[REG_EFL])
#define LOAD(to, from) "mov (" from "), " to
#define TRAP "int3"
#define SELF_JUMP "\xeb\xfe" /* a jump to itself */
#define VECTOR "x"           /* a constraint: a register of floating point */
/* From a trap to the pc that its handler sees, and from there to the next instruction. */
enum { load_size = 3, trap_size = 1, trap_pc = 1, trap_rest = 0 };
#else
#define PC_OF(context) ((context)->uc_mcontext.pc)
#define SP_OF(context) ((context)->uc_mcontext.sp)
#define FLAGS_OF(context) ((context)->uc_mcontext.pstate)
#define LOAD(to, from) "ldr " to ", [" from "]"
#define TRAP "brk #0"
#define SELF_JUMP "\0\0\0\x14"
#define VECTOR "w"
enum { load_size = 4, trap_size = 4, trap_pc = 0, trap_rest = 4 };
#endif
