/* Follows a list of the target's, each element of which lies on a page of its own, and writes to it. */
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/uaccess.h>

struct packet {
    void *dev;
    unsigned length;
    struct packet *next;
};

static bool write;
module_param(write, bool, 0444);

static int before(struct kprobe *probe, struct pt_regs *regs) {
    struct packet *at;
    unsigned count = 0;
    unsigned long sum = 0;
    for (at = (struct packet *)regs_get_kernel_argument(regs, 0); at; at = at->next) {
        count++;
        sum += at->length;
        if (write) at->length = 1;
    }
    printk("%u packets, %lu\n", count, sum);
    if (write) {
        int *value = (int *)kallsyms_lookup_name("shared_value");
        int copied = 0;
        printk("shared_value is %d\n", *value);
        *value = 6;
        if (copy_from_user(&copied, value, sizeof(copied)) == 0) printk("and now %d\n", copied);
        printk("left %lu of 4 at 16, %lu of 4 in the code\n", copy_from_user(&copied, (void *)16, 4),
               copy_to_user(probe->addr, &copied, 4));
        printk("no name at %ld\n", kallsyms_lookup_name("no_such_symbol"));
    }
    return 0;
}

static struct kprobe probe = {.symbol_name = "sum_list", .pre_handler = before};

static int __init deep_init(void) { return register_kprobe(&probe); }

module_init(deep_init);
MODULE_LICENSE("GPL");
