/* Probes that are unregistered from a handler, their own or another's, with calls in flight. `how` names it. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

#include "machine.h"

static char how[16] = "";
module_param_string(how, how, sizeof(how), 0444);

static unsigned begun, returned, before_count, after_count, entered;

static int is(const char *what) { return strcmp(how, what) == 0; }

static struct kretprobe calls;
static struct kprobe instruction, reader;
static struct jprobe entry;

static int begins(struct kretprobe_instance *call, struct pt_regs *regs) {
    unsigned *data = (unsigned *)call->data;
    *data = ++begun;
    if (is("begins") && begun == 3) {
        unregister_kretprobe(&calls);
        printk("call %u of %s by %s, still\n", *data, call->rp->kp.symbol_name, call->task->comm);
    }
    return 0;
}

static int returns(struct kretprobe_instance *call, struct pt_regs *regs) {
    returned++;
    if (is("returns") && returned == 2) {
        unregister_kretprobe(&calls);
        printk("call %u of %s by %s, still\n", *(unsigned *)call->data, call->rp->kp.symbol_name, call->task->comm);
    }
    return 0;
}

static void again(void) {
    calls.kp.addr = NULL;
    printk("again %d\n", register_kretprobe(&calls));
}

static int before(struct kprobe *probe, struct pt_regs *regs) {
    before_count++;
    if (is("before")) unregister_kprobe(&instruction); /* what comes after is not called any more */
    if (is("other") && regs_get_kernel_argument(regs, 0) == 5) unregister_kretprobe(&calls);
    if (is("again") && regs_get_kernel_argument(regs, 0) == 5) {
        unregister_kretprobe(&calls);
        again();
    }
    return 0;
}

static void after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags) {
    after_count++;
    if (is("after") && after_count == 4) unregister_kprobe(&instruction);
}

static int enters(int n) {
    entered++;
    if (is("entry") && entered == 2) unregister_jprobe(&entry);
    jprobe_return();
    return 0;
}

static int mends(struct kprobe *probe, struct pt_regs *regs, int trap) {
    static unsigned faults;
    printk("fault %u\n", ++faults);
    if (is("fault")) unregister_kprobe(&reader);
    set_first_argument(regs, kallsyms_lookup_name("shared_value"));
    return 1;
}

static struct kretprobe calls = {.kp.symbol_name = "recurse",
                                 .entry_handler = begins,
                                 .handler = returns,
                                 .data_size = sizeof(unsigned),
                                 .maxactive = 64};
static struct kprobe instruction = {.symbol_name = "recurse", .pre_handler = before, .post_handler = after};
static struct jprobe entry = {.entry = enters, .kp.symbol_name = "recurse"};
static struct kprobe reader = {.symbol_name = "read_at", .fault_handler = mends};

static int __init leaves_init(void) {
    int error = register_kretprobe(&calls);
    if (error == 0) error = register_kprobe(&instruction);
    if (error == 0) error = register_jprobe(&entry);
    return error ? error : register_kprobe(&reader);
}

static void __exit leaves_exit(void) {
    printk("begun %u returned %u before %u after %u entered %u\n", begun, returned, before_count, after_count, entered);
}

module_init(leaves_init);
module_exit(leaves_exit);
MODULE_LICENSE("GPL");
