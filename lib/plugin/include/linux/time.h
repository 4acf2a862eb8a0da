/* The C library's times, and constants that kernel sources know. */
#ifndef KTRACE_LINUX_TIME_H
#define KTRACE_LINUX_TIME_H

#include <linux/types.h>

#include <sys/time.h>
#include <time.h>

#define MSEC_PER_SEC 1000L
#define USEC_PER_MSEC 1000L
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define USEC_PER_SEC 1000000L
#define NSEC_PER_SEC 1000000000L

KTRACE_BEGIN
void do_gettimeofday(struct timeval *now);
void getnstimeofday(struct timespec *now);
KTRACE_END

#endif
