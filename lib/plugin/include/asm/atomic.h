/* Older kernel sources name it so. */
#include <linux/atomic.h>
