/* Handlers of a plugin run one at a time: a lock is always free. */
#ifndef KTRACE_LINUX_SPINLOCK_H
#define KTRACE_LINUX_SPINLOCK_H

#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

typedef struct {
    int held;
} spinlock_t;
typedef spinlock_t raw_spinlock_t;

#define DEFINE_SPINLOCK(name) spinlock_t name = {0}
#define DEFINE_RAW_SPINLOCK(name) DEFINE_SPINLOCK(name)
#define __SPIN_LOCK_UNLOCKED(name)                                                                                     \
    { 0 }
#define spin_lock_init(lock) ((void)((lock)->held = 0))
#define spin_lock(lock) ((void)((lock)->held = 1))
#define spin_unlock(lock) ((void)((lock)->held = 0))
#define spin_trylock(lock) ((lock)->held = 1)
#define spin_lock_irqsave(lock, flags) ((void)((flags) = 0, (lock)->held = 1))
#define spin_unlock_irqrestore(lock, flags) ((void)(flags), (void)((lock)->held = 0))
#define spin_lock_irq(lock) spin_lock(lock)
#define spin_unlock_irq(lock) spin_unlock(lock)
#define spin_lock_bh(lock) spin_lock(lock)
#define spin_unlock_bh(lock) spin_unlock(lock)
#define raw_spin_lock spin_lock
#define raw_spin_unlock spin_unlock
#define raw_spin_lock_irqsave spin_lock_irqsave
#define raw_spin_unlock_irqrestore spin_unlock_irqrestore

#endif
