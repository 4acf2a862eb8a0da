/* Passed on: libc's <errno.h> includes this one. */
#include_next <linux/errno.h>

#ifndef ENOTSUPP
#define ENOTSUPP 524
#endif
