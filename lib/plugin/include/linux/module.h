/* The parts that make a shared object a plugin. */
#ifndef KTRACE_LINUX_MODULE_H
#define KTRACE_LINUX_MODULE_H

#include <linux/errno.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/stat.h>
#include <linux/string.h>
#include <linux/types.h>

struct module;
#define THIS_MODULE ((struct module *)0)

#define MODULE_INFO(tag, info) __MODULE_INFO(#tag, info)
#define MODULE_LICENSE(text) __MODULE_INFO("license", text)
#define MODULE_AUTHOR(text) __MODULE_INFO("author", text)
#define MODULE_DESCRIPTION(text) __MODULE_INFO("description", text)
#define MODULE_VERSION(text) __MODULE_INFO("version", text)
#define MODULE_ALIAS(text) __MODULE_INFO("alias", text)
#define EXPORT_SYMBOL(symbol) extern int ktrace_exported_##symbol
#define EXPORT_SYMBOL_GPL(symbol) EXPORT_SYMBOL(symbol)

static inline bool try_module_get(struct module *module) {
    (void)module;
    return true;
}
static inline void module_put(struct module *module) { (void)module; }

KTRACE_BEGIN
/* The linker makes these where a plugin has parameters. */
extern const struct kernel_param __start_ktrace_params[] __attribute__((weak, visibility("hidden")));
extern const struct kernel_param __stop_ktrace_params[] __attribute__((weak, visibility("hidden")));
__attribute__((weak, used, visibility("default"))) struct ktrace_plugin ktrace_plugin = {
    KTRACE_PLUGIN_ABI, sizeof(struct kernel_param), __start_ktrace_params, __stop_ktrace_params};
KTRACE_END

#endif
