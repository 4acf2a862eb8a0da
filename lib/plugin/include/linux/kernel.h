/* The system's <linux/kernel.h>, and what kernel sources expect of theirs. */
#ifndef KTRACE_LINUX_KERNEL_H
#define KTRACE_LINUX_KERNEL_H

#include_next <linux/kernel.h>

#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/printk.h>
#include <linux/types.h>

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif
#define ALIGN(x, a) (((x) + (__typeof__(x))(a)-1) & ~((__typeof__(x))(a)-1))
#define container_of(pointer, type, member)                                                                            \
    (__extension__({                                                                                                   \
        const __typeof__(((type *)0)->member) *ktrace_member = (pointer);                                              \
        (type *)((char *)ktrace_member - offsetof(type, member));                                                      \
    }))
#ifndef __cplusplus
#define min(a, b)                                                                                                      \
    (__extension__({                                                                                                   \
        __typeof__(a) ktrace_a = (a);                                                                                  \
        __typeof__(b) ktrace_b = (b);                                                                                  \
        ktrace_a < ktrace_b ? ktrace_a : ktrace_b;                                                                     \
    }))
#define max(a, b)                                                                                                      \
    (__extension__({                                                                                                   \
        __typeof__(a) ktrace_a = (a);                                                                                  \
        __typeof__(b) ktrace_b = (b);                                                                                  \
        ktrace_a > ktrace_b ? ktrace_a : ktrace_b;                                                                     \
    }))
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define swap(a, b)                                                                                                     \
    do {                                                                                                               \
        __typeof__(a) ktrace_a = (a);                                                                                  \
        (a) = (b);                                                                                                     \
        (b) = ktrace_a;                                                                                                \
    } while (0)
#endif
#define might_sleep()                                                                                                  \
    do {                                                                                                               \
    } while (0)
#define IS_ENABLED(option) KTRACE_IS_ENABLED(option)
#define KTRACE_IS_ENABLED(value) KTRACE_IS_ONE(KTRACE_ONE_##value)
#define KTRACE_ONE_1 0,
#define KTRACE_IS_ONE(one_or_junk) KTRACE_SECOND(one_or_junk 1, 0)
#define KTRACE_SECOND(ignored, value, ...) value

KTRACE_BEGIN
/* With the kernel's formats: %p without 0x, %pS. */
int ktrace_snprintf(char *into, size_t size, const char *format, ...) __printf(3, 4);
int ktrace_vsnprintf(char *into, size_t size, const char *format, va_list arguments);
int scnprintf(char *into, size_t size, const char *format, ...) __printf(3, 4);
int vscnprintf(char *into, size_t size, const char *format, va_list arguments);
int ktrace_sprintf(char *into, const char *format, ...) __printf(2, 3);
int ktrace_sscanf(const char *from, const char *format, ...) __attribute__((format(scanf, 2, 3)));
unsigned long simple_strtoul(const char *text, char **end, unsigned int base);
long simple_strtol(const char *text, char **end, unsigned int base);
unsigned long long simple_strtoull(const char *text, char **end, unsigned int base);
long long simple_strtoll(const char *text, char **end, unsigned int base);
int kstrtoul(const char *text, unsigned int base, unsigned long *result);
int kstrtol(const char *text, unsigned int base, long *result);
int kstrtoint(const char *text, unsigned int base, int *result);
int kstrtouint(const char *text, unsigned int base, unsigned int *result);
KTRACE_END

#ifndef __cplusplus
#define snprintf ktrace_snprintf
#define vsnprintf ktrace_vsnprintf
#define sprintf ktrace_sprintf
#define sscanf ktrace_sscanf
#endif

#endif
