/* Kernel sources get in_interrupt() from here, too. */
#include <linux/preempt.h>
