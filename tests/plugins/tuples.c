/* Follows a program's own data: tuples of CPython's in tuples, each with a number, (n, (n-1, (…, None))). */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

struct type;
struct object {
    long references;
    struct type *type;
    long size; /* of those that have a size; a number's digits */
};
struct type {
    struct object head;
    const char *name;
};
struct tuple {
    struct object head;
    struct object *items[2];
};
struct number {
    struct object head;
    u32 digits[1];
};

static int before(struct kprobe *probe, struct pt_regs *regs) {
    struct object *at = (struct object *)regs_get_kernel_argument(regs, 0);
    struct type *tuple = at->type;
    long sum = 0;
    int depth = 0;
    if (strcmp(tuple->name, "tuple") != 0 || at->size != 2) return 0;
    for (; at->type == tuple && at->size == 2; at = ((struct tuple *)at)->items[1], depth++) {
        struct number *number = (struct number *)((struct tuple *)at)->items[0];
        if (number->head.size == 1) sum += number->digits[0];
    }
    printk("%d deep in %s, sum %ld, then %s\n", depth, current->comm, sum, at->type->name);
    return 0;
}

static struct kprobe probe = {.symbol_name = "PyObject_GetIter", .pre_handler = before};

static int __init tuples_init(void) { return register_kprobe(&probe); }

module_init(tuples_init);
MODULE_LICENSE("GPL");
