/* Handlers of a plugin run one at a time: what one reads no other changes meanwhile. */
#ifndef KTRACE_LINUX_RCUPDATE_H
#define KTRACE_LINUX_RCUPDATE_H

#include <linux/compiler.h>

#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_dereference(pointer) READ_ONCE(pointer)
#define rcu_assign_pointer(pointer, value) WRITE_ONCE(pointer, value)
#define synchronize_rcu() ((void)0)
#define synchronize_sched() ((void)0)

#endif
