/* Newer kernel sources look for parts of task_struct here. */
#include <linux/sched.h>
