/* Assertions: a broken one ends the handler, and its probe is disabled. */
#ifndef KTRACE_LINUX_BUG_H
#define KTRACE_LINUX_BUG_H

#include <linux/printk.h>

KTRACE_BEGIN
void panic(const char *format, ...) __attribute__((noreturn)) __printf(1, 2);
KTRACE_END

#define BUG() panic("BUG at %s:%d", __FILE__, __LINE__)
#define BUG_ON(condition)                                                                                              \
    do {                                                                                                               \
        if (unlikely(condition)) BUG();                                                                                \
    } while (0)
#define WARN(condition, ...)                                                                                           \
    (__extension__({                                                                                                   \
        int ktrace_warns = !!(condition);                                                                              \
        if (unlikely(ktrace_warns)) printk(KERN_WARNING __VA_ARGS__);                                                  \
        ktrace_warns;                                                                                                  \
    }))
#define WARN_ON(condition) WARN(condition, "WARNING: at %s:%d\n", __FILE__, __LINE__)
#define WARN_ON_ONCE(condition)                                                                                        \
    (__extension__({                                                                                                   \
        static int ktrace_has_warned;                                                                                  \
        int ktrace_is_broken = !!(condition);                                                                          \
        if (unlikely(ktrace_is_broken) && !ktrace_has_warned) ktrace_has_warned = WARN_ON(1);                          \
        ktrace_is_broken;                                                                                              \
    }))
#ifdef __cplusplus
#define BUILD_BUG_ON(condition) static_assert(!(condition), #condition)
#else
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#endif

#endif
