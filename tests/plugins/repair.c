/* Fixes a bug in a running process: `checked` takes no negative numbers. By its argument, by its result, or by not
 * running it at all. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

#include "machine.h"

static char how[16] = "argument";
module_param_string(how, how, sizeof(how), 0444);

static int before(struct kprobe *probe, struct pt_regs *regs) {
    int n = (int)regs_get_kernel_argument(regs, 0);
    if (n >= 0) return 0;
    if (strcmp(how, "argument") == 0) set_first_argument(regs, (unsigned)-n);
    if (strcmp(how, "skip") != 0) return 0;
    regs_set_return_value(regs, 77);
    return_at_once(regs);
    return 1;
}

static int returns(struct kretprobe_instance *call, struct pt_regs *regs) {
    if ((int)regs_return_value(regs) == -1 && strcmp(how, "result") == 0) regs_set_return_value(regs, 55);
    return 0;
}

static struct kprobe entry = {.symbol_name = "checked", .pre_handler = before};
static struct kretprobe result = {.kp.symbol_name = "checked", .handler = returns};

static int __init repair_init(void) {
    int error = register_kprobe(&entry);
    return error ? error : register_kretprobe(&result);
}

module_init(repair_init);
MODULE_LICENSE("GPL");
