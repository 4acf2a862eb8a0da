/* Kernel sources get in_interrupt() from here. */
#include <linux/preempt.h>
