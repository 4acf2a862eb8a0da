/* Older kernel sources name it so. */
#include <linux/uaccess.h>
