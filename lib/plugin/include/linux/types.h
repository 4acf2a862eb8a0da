/* The system's <linux/types.h>, and the types of kernel sources. */
#ifndef KTRACE_LINUX_TYPES_H
#define KTRACE_LINUX_TYPES_H

#include_next <linux/types.h>

#include <linux/compiler.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef unsigned int gfp_t;
typedef unsigned long phys_addr_t;
typedef struct {
    int counter;
} atomic_t;
typedef struct {
    s64 counter;
} atomic64_t;

struct list_head {
    struct list_head *next, *prev;
};
struct hlist_node {
    struct hlist_node *next, **pprev;
};
struct hlist_head {
    struct hlist_node *first;
};

#endif
