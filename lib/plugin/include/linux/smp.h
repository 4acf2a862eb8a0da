/* The processor that a handler runs on. */
#ifndef KTRACE_LINUX_SMP_H
#define KTRACE_LINUX_SMP_H

#include <linux/preempt.h>
#include <linux/sched.h>

#define get_cpu() smp_processor_id()
#define put_cpu() ((void)0)

#endif
