/* Passed on: libc's <limits.h> includes this one. */
#include_next <linux/limits.h>
