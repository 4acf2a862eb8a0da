/* Entry and exit of a plugin. */
#ifndef KTRACE_LINUX_INIT_H
#define KTRACE_LINUX_INIT_H

#include <linux/compiler.h>

KTRACE_BEGIN
int init_module(void);
void cleanup_module(void);
KTRACE_END

/* The function that runs when the plugin is loaded; anything but 0 refuses it. */
#define module_init(function)                                                                                          \
    int init_module(void) { return function(); }
/* The function that runs at the end of the trace. */
#define module_exit(function)                                                                                          \
    void cleanup_module(void) { function(); }

#endif
