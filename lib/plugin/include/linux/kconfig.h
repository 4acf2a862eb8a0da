/* A kernel's configuration, as far as a plugin asks: modules, kprobes, and the machine. */
#ifndef KTRACE_LINUX_KCONFIG_H
#define KTRACE_LINUX_KCONFIG_H

#include <asm/kconfig.h>

#ifndef MODULE
#define MODULE 1
#endif
#define CONFIG_64BIT 1
#define CONFIG_SMP 1
#define CONFIG_MODULES 1
#define CONFIG_KALLSYMS 1
#define CONFIG_KPROBES 1
#define CONFIG_KRETPROBES 1
#define CONFIG_HAVE_KPROBES 1
#define CONFIG_HAVE_KRETPROBES 1

#ifdef __cplusplus
#define KTRACE_BEGIN extern "C" {
#define KTRACE_END }
#else
#define KTRACE_BEGIN
#define KTRACE_END
#endif

#endif
