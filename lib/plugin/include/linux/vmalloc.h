/* Large memory of the plugin's own. */
#ifndef KTRACE_LINUX_VMALLOC_H
#define KTRACE_LINUX_VMALLOC_H

#include <linux/slab.h>

KTRACE_BEGIN
void *vmalloc(unsigned long size);
void *vzalloc(unsigned long size);
void vfree(const void *memory);
KTRACE_END

#endif
