/* Kernel sources get asmlinkage from here. */
#include <linux/compiler.h>
