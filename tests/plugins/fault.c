/* An instruction of the target's faults: the fault_handler mends its register, and it is run again. */
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>

#include "machine.h"

static bool mend = true;
module_param(mend, bool, 0444);
static bool post;
module_param(post, bool, 0444);

static int faults(struct kprobe *probe, struct pt_regs *regs, int trap) {
    printk("%s at +%lu\n", trap_name(trap), instruction_pointer(regs) - (unsigned long)probe->addr);
    if (!mend) return 0;
    set_first_argument(regs, kallsyms_lookup_name("shared_value"));
    return 1;
}

static void after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags) {}

static struct kprobe probe = {.symbol_name = "read_at", .fault_handler = faults};

static int __init fault_init(void) {
    if (post) probe.post_handler = after;
    return register_kprobe(&probe);
}

module_init(fault_init);
MODULE_LICENSE("GPL");
