/* See printk_ratelimited; every place of a kernel's has a limit of its own, here all share one. */
#ifndef KTRACE_LINUX_RATELIMIT_H
#define KTRACE_LINUX_RATELIMIT_H

#include <linux/printk.h>

#endif
