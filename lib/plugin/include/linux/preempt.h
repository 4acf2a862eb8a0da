/* Handlers of a plugin run one at a time, each to its end, and no interrupt is handled by one. */
#ifndef KTRACE_LINUX_PREEMPT_H
#define KTRACE_LINUX_PREEMPT_H

#include <linux/types.h>

#define preempt_disable() ((void)0)
#define preempt_enable() ((void)0)
#define preempt_count() 0
#define in_interrupt() 0
#define in_irq() 0
#define in_softirq() 0
#define in_nmi() 0
#define in_atomic() 0
#define in_task() 1
#define irqs_disabled() 0
#define local_irq_save(flags) ((void)((flags) = 0))
#define local_irq_restore(flags) ((void)(flags))
#define local_irq_disable() ((void)0)
#define local_irq_enable() ((void)0)

#endif
