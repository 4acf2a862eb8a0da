/* Ticks of a hundredth of a second. */
#ifndef KTRACE_LINUX_JIFFIES_H
#define KTRACE_LINUX_JIFFIES_H

#include <linux/ktime.h>

#define HZ 100
#define jiffies ((unsigned long)(ktime_get() / (NSEC_PER_SEC / HZ)))
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define msecs_to_jiffies(ms) ((unsigned long)(ms)*HZ / 1000)
#define jiffies_to_msecs(ticks) ((unsigned int)((ticks)*1000 / HZ))

#endif
