/* Kernel sources get GFP_KERNEL from here. */
#include <linux/slab.h>
