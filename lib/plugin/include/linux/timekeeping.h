/* Kernel sources get ktime_get() from here, too. */
#include <linux/ktime.h>
