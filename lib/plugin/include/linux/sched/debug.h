/* Newer kernel sources look for dump_stack() here. */
#include <linux/printk.h>
