/* The machine's part of a kernel's configuration. */
#ifndef KTRACE_ASM_KCONFIG_H
#define KTRACE_ASM_KCONFIG_H

#define CONFIG_ARM64 1

#endif
