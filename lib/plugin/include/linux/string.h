/* The C library's functions, and the kernel's own. */
#ifndef KTRACE_LINUX_STRING_H
#define KTRACE_LINUX_STRING_H

#include_next <linux/string.h>

#include <linux/types.h>

#include <string.h>
#include <strings.h>

KTRACE_BEGIN
#if !__GLIBC_PREREQ(2, 38)
size_t strlcpy(char *into, const char *from, size_t size);
size_t strlcat(char *into, const char *from, size_t size);
#endif
ssize_t strscpy(char *into, const char *from, size_t size);
char *strim(char *text);
char *skip_spaces(const char *text);
KTRACE_END
#define strstrip strim

#endif
