/* The C library's signals: the system's header of this name cannot be included beside them. */
#ifndef KTRACE_LINUX_SIGNAL_H
#define KTRACE_LINUX_SIGNAL_H

#include <signal.h>

#endif
