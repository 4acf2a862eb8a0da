/* Messages: they become `log` records of ktrace's output. */
#ifndef KTRACE_LINUX_PRINTK_H
#define KTRACE_LINUX_PRINTK_H

#include <linux/compiler.h>

#include <stdarg.h>

#define KERN_EMERG "<0>"
#define KERN_ALERT "<1>"
#define KERN_CRIT "<2>"
#define KERN_ERR "<3>"
#define KERN_WARNING "<4>"
#define KERN_NOTICE "<5>"
#define KERN_INFO "<6>"
#define KERN_DEBUG "<7>"
#define KERN_DEFAULT "<d>"
#define KERN_CONT "<c>"

struct va_format {
    const char *fmt;
    va_list *va;
};

KTRACE_BEGIN
int printk(const char *format, ...) __printf(1, 2);
int vprintk(const char *format, va_list arguments);
/* The stopped thread's stack, into the log. */
void dump_stack(void);
/* True no more than ten times in five seconds. */
int printk_ratelimit(void);
KTRACE_END

#ifndef pr_fmt
#define pr_fmt(format) format
#endif
#define pr_emerg(format, ...) printk(KERN_EMERG pr_fmt(format), ##__VA_ARGS__)
#define pr_alert(format, ...) printk(KERN_ALERT pr_fmt(format), ##__VA_ARGS__)
#define pr_crit(format, ...) printk(KERN_CRIT pr_fmt(format), ##__VA_ARGS__)
#define pr_err(format, ...) printk(KERN_ERR pr_fmt(format), ##__VA_ARGS__)
#define pr_warning(format, ...) printk(KERN_WARNING pr_fmt(format), ##__VA_ARGS__)
#define pr_warn pr_warning
#define pr_notice(format, ...) printk(KERN_NOTICE pr_fmt(format), ##__VA_ARGS__)
#define pr_info(format, ...) printk(KERN_INFO pr_fmt(format), ##__VA_ARGS__)
#define pr_cont(format, ...) printk(KERN_CONT format, ##__VA_ARGS__)
#ifdef DEBUG
#define pr_debug(format, ...) printk(KERN_DEBUG pr_fmt(format), ##__VA_ARGS__)
#else
#define pr_debug(format, ...)                                                                                          \
    do {                                                                                                               \
        if (0) printk(KERN_DEBUG pr_fmt(format), ##__VA_ARGS__);                                                       \
    } while (0)
#endif
#define pr_devel pr_debug
#define printk_once(...)                                                                                               \
    do {                                                                                                               \
        static int ktrace_said;                                                                                        \
        if (!ktrace_said) {                                                                                            \
            ktrace_said = 1;                                                                                           \
            printk(__VA_ARGS__);                                                                                       \
        }                                                                                                              \
    } while (0)
#define printk_ratelimited(...)                                                                                        \
    do {                                                                                                               \
        if (printk_ratelimit()) printk(__VA_ARGS__);                                                                   \
    } while (0)
#define pr_info_ratelimited(format, ...) printk_ratelimited(KERN_INFO pr_fmt(format), ##__VA_ARGS__)
#define pr_err_ratelimited(format, ...) printk_ratelimited(KERN_ERR pr_fmt(format), ##__VA_ARGS__)
#define pr_info_once(format, ...) printk_once(KERN_INFO pr_fmt(format), ##__VA_ARGS__)

#endif
