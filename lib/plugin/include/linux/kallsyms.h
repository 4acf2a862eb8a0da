/* The target's symbols. */
#ifndef KTRACE_LINUX_KALLSYMS_H
#define KTRACE_LINUX_KALLSYMS_H

#include <linux/types.h>

#define KSYM_NAME_LEN 512
#define KSYM_SYMBOL_LEN 1024

KTRACE_BEGIN
/* The address of a function or variable of the target's ([MODULE:]NAME); 0: there is none. */
unsigned long kallsyms_lookup_name(const char *name);
/* name+0xoffset/0xsize [module] of an address, as %pS prints it. Returns the length. */
int sprint_symbol(char *into, unsigned long address);
KTRACE_END

#endif
