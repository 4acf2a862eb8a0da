/* Newer kernel sources look for mm_struct here. */
#include <linux/sched.h>
