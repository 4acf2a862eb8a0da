/* Counters. Handlers of a plugin run one at a time. */
#ifndef KTRACE_LINUX_ATOMIC_H
#define KTRACE_LINUX_ATOMIC_H

#include <linux/types.h>

#define ATOMIC_INIT(value)                                                                                             \
    { value }
#define ATOMIC64_INIT(value)                                                                                           \
    { value }
#define atomic_read(atomic) ((atomic)->counter)
#define atomic_set(atomic, value) ((void)((atomic)->counter = (value)))
#define atomic_inc(atomic) ((void)(atomic)->counter++)
#define atomic_dec(atomic) ((void)(atomic)->counter--)
#define atomic_add(value, atomic) ((void)((atomic)->counter += (value)))
#define atomic_sub(value, atomic) ((void)((atomic)->counter -= (value)))
#define atomic_inc_return(atomic) (++(atomic)->counter)
#define atomic_dec_return(atomic) (--(atomic)->counter)
#define atomic_add_return(value, atomic) ((atomic)->counter += (value))
#define atomic_dec_and_test(atomic) (--(atomic)->counter == 0)
#define atomic_inc_and_test(atomic) (++(atomic)->counter == 0)
#define atomic64_read atomic_read
#define atomic64_set atomic_set
#define atomic64_inc atomic_inc
#define atomic64_dec atomic_dec
#define atomic64_add atomic_add
#define atomic64_sub atomic_sub
#define atomic64_inc_return atomic_inc_return
#define atomic64_add_return atomic_add_return

#endif
