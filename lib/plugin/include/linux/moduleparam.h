/* Parameters of a plugin: --plugin 'FILE.so name=value'. */
#ifndef KTRACE_LINUX_MODULEPARAM_H
#define KTRACE_LINUX_MODULEPARAM_H

#include <linux/types.h>

enum ktrace_param_type {
    ktrace_param_byte,
    ktrace_param_short,
    ktrace_param_ushort,
    ktrace_param_int,
    ktrace_param_uint,
    ktrace_param_long,
    ktrace_param_ulong,
    ktrace_param_ullong,
    ktrace_param_charp,
    ktrace_param_bool,
    ktrace_param__Bool = ktrace_param_bool, /* <stdbool.h> makes bool a macro */
    ktrace_param_invbool,
    ktrace_param_string
};

/* One of a plugin's parameters. */
struct kernel_param {
    const char *name;
    void *arg;           /* the variable */
    unsigned int *count; /* arrays: how many were given; may be NULL */
    enum ktrace_param_type type;
    unsigned int size;     /* of one element; a string's room */
    unsigned int elements; /* arrays: how many there may be; else 0 */
    unsigned int perm;
};

/* How ktrace finds them, whatever version of these headers a plugin was built with. */
struct ktrace_plugin {
    unsigned int abi, param_size;
    const struct kernel_param *params, *params_end;
};
#define KTRACE_PLUGIN_ABI 1

#define KTRACE_JOIN_(a, b) a##b
#define KTRACE_JOIN(a, b) KTRACE_JOIN_(a, b)
#define __MODULE_INFO(tag, info)                                                                                       \
    static const char KTRACE_JOIN(ktrace_modinfo_, __COUNTER__)[]                                                      \
        __attribute__((used, section(".modinfo"), aligned(1))) = tag "=" info
#define MODULE_PARM_DESC(name, text) __MODULE_INFO("parm", #name ":" text)

#define KTRACE_PARAM(name, variable, count, type, size, elements, perm)                                                \
    static const struct kernel_param ktrace_param_of_##name                                                            \
        __attribute__((used, section("ktrace_params"), aligned(8))) = {#name, variable, count, type,                   \
                                                                       size,  elements, perm}

#define module_param_named(name, variable, type, perm)                                                                 \
    KTRACE_PARAM(name, &(variable), 0, ktrace_param_##type, sizeof(variable), 0, perm)
#define module_param(name, type, perm) module_param_named(name, name, type, perm)
#define module_param_string(name, string, length, perm)                                                                \
    KTRACE_PARAM(name, string, 0, ktrace_param_string, length, 0, perm)
#define module_param_array_named(name, array, type, count, perm)                                                       \
    KTRACE_PARAM(name, array, (unsigned int *)(void *)(count), ktrace_param_##type, sizeof((array)[0]),                \
                 sizeof(array) / sizeof((array)[0]), perm)
#define module_param_array(name, type, count, perm) module_param_array_named(name, name, type, count, perm)

#endif
