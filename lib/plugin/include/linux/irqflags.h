/* Kernel sources get local_irq_save() from here. */
#include <linux/preempt.h>
