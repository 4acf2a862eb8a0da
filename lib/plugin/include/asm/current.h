/* Kernel sources get current from here, too. */
#include <linux/sched.h>
