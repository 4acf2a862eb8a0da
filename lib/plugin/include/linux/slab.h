/* Memory of the plugin's own: it stays in the host, whatever process is traced. */
#ifndef KTRACE_LINUX_SLAB_H
#define KTRACE_LINUX_SLAB_H

#include <linux/types.h>

#define GFP_KERNEL 0u
#define GFP_ATOMIC 1u
#define GFP_NOWAIT 2u
#define __GFP_ZERO 4u

KTRACE_BEGIN
void *kmalloc(size_t size, gfp_t flags);
void *kzalloc(size_t size, gfp_t flags);
void *kcalloc(size_t count, size_t size, gfp_t flags);
void *kmalloc_array(size_t count, size_t size, gfp_t flags);
void *krealloc(const void *memory, size_t size, gfp_t flags);
void kfree(const void *memory);
char *kstrdup(const char *text, gfp_t flags);
void *kmemdup(const void *memory, size_t size, gfp_t flags);
KTRACE_END

#endif
