/* Errors as pointers. */
#ifndef KTRACE_LINUX_ERR_H
#define KTRACE_LINUX_ERR_H

#include <linux/errno.h>
#include <linux/types.h>

#define MAX_ERRNO 4095
#define IS_ERR_VALUE(x) unlikely((unsigned long)(x) >= (unsigned long)-MAX_ERRNO)

static inline void *ERR_PTR(long error) { return (void *)error; }
static inline long PTR_ERR(const void *pointer) { return (long)pointer; }
static inline bool IS_ERR(const void *pointer) { return IS_ERR_VALUE((unsigned long)pointer); }
static inline bool IS_ERR_OR_NULL(const void *pointer) { return !pointer || IS_ERR(pointer); }

#endif
