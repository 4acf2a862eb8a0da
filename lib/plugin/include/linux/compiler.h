/* Annotations of kernel sources. */
#ifndef KTRACE_LINUX_COMPILER_H
#define KTRACE_LINUX_COMPILER_H

#include <linux/kconfig.h>

#define __user
#define __kernel
#define __iomem
#define __force
#define __rcu
#define __percpu
#define __kprobes
#define nokprobe_inline static inline
#define NOKPROBE_SYMBOL(function)
#define notrace
#define asmlinkage
#define __init
#define __exit
#define __initdata
#define __exitdata
#define __devinit
#define __devexit
#define __read_mostly
#define __maybe_unused __attribute__((unused))
#define __always_unused __attribute__((unused))
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define noinline __attribute__((noinline))
#ifndef __cplusplus
#define __packed __attribute__((packed))
#define __aligned(n) __attribute__((aligned(n)))
#endif
#define __must_check __attribute__((warn_unused_result))
#define __printf(text, first) __attribute__((format(printf, text, first)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ volatile("" ::: "memory")
#define ACCESS_ONCE(x) (*(volatile __typeof__(x) *)&(x))
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))

#endif
