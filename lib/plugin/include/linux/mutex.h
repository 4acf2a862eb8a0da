/* Handlers of a plugin run one at a time: a mutex is always free. */
#ifndef KTRACE_LINUX_MUTEX_H
#define KTRACE_LINUX_MUTEX_H

#include <linux/types.h>

struct mutex {
    int held;
};

#define DEFINE_MUTEX(name) struct mutex name = {0}
#define mutex_init(mutex) ((void)((mutex)->held = 0))
#define mutex_lock(mutex) ((void)((mutex)->held = 1))
#define mutex_unlock(mutex) ((void)((mutex)->held = 0))
#define mutex_trylock(mutex) ((mutex)->held = 1)

#endif
