/* Kernel sources get EXPORT_SYMBOL from here, too. */
#include <linux/module.h>
