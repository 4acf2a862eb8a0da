/* The machine's part of a kernel's configuration. */
#ifndef KTRACE_ASM_KCONFIG_H
#define KTRACE_ASM_KCONFIG_H

#define CONFIG_X86 1
#define CONFIG_X86_64 1

#endif
