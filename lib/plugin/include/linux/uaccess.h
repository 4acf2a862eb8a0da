/* The target's memory, where a bad address is an answer and no fault. */
#ifndef KTRACE_LINUX_UACCESS_H
#define KTRACE_LINUX_UACCESS_H

#include <linux/errno.h>
#include <linux/types.h>

KTRACE_BEGIN
/* Bytes that could not be copied. */
unsigned long copy_from_user(void *to, const void __user *from, unsigned long size);
unsigned long copy_to_user(void __user *to, const void *from, unsigned long size);
unsigned long clear_user(void __user *to, unsigned long size);
/* The length without the NUL, `count` where there is none within; -EFAULT. */
long strncpy_from_user(char *to, const char __user *from, long count);
/* The length with the NUL, more than `count` where there is none within; 0: a bad address. */
long strnlen_user(const char __user *text, long count);
/* The plugin's own memory too; -EFAULT. */
long probe_kernel_read(void *to, const void *from, size_t size);
long probe_kernel_write(void *to, const void *from, size_t size);
/* Is all of it outside of the plugin's own memory? */
int ktrace_access_ok(const void __user *at, unsigned long size);
KTRACE_END

#define VERIFY_READ 0
#define VERIFY_WRITE 1
/* access_ok(address, size), and with VERIFY_… in front as it was up to Linux 4.20. */
#define KTRACE_ACCESS_OK3(type, at, size) ktrace_access_ok((const void __user *)(at), size)
#define KTRACE_ACCESS_OK2(at, size) ktrace_access_ok((const void __user *)(at), size)
#define KTRACE_ACCESS_OK(a, b, c, chosen, ...) chosen
#define access_ok(...) KTRACE_ACCESS_OK(__VA_ARGS__, KTRACE_ACCESS_OK3, KTRACE_ACCESS_OK2, 0)(__VA_ARGS__)

#define __copy_from_user copy_from_user
#define __copy_to_user copy_to_user
#define __copy_from_user_inatomic copy_from_user
#define __copy_to_user_inatomic copy_to_user
#define copy_from_kernel_nofault probe_kernel_read
#define copy_to_kernel_nofault probe_kernel_write
static inline long copy_from_user_nofault(void *to, const void __user *from, size_t size) {
    return copy_from_user(to, from, size) ? -EFAULT : 0;
}
static inline long copy_to_user_nofault(void __user *to, const void *from, size_t size) {
    return copy_to_user(to, from, size) ? -EFAULT : 0;
}
#define get_user(value, pointer)                                                                                       \
    (__extension__({                                                                                                   \
        __typeof__(*(pointer)) ktrace_value = 0;                                                                       \
        long ktrace_failed = copy_from_user_nofault(&ktrace_value, (pointer), sizeof ktrace_value);                    \
        (value) = ktrace_value;                                                                                        \
        (int)ktrace_failed;                                                                                            \
    }))
#define put_user(value, pointer)                                                                                       \
    (__extension__({                                                                                                   \
        __typeof__(*(pointer)) ktrace_value = (value);                                                                 \
        (int)copy_to_user_nofault((pointer), &ktrace_value, sizeof ktrace_value);                                      \
    }))
#define __get_user get_user
#define __put_user put_user

#endif
