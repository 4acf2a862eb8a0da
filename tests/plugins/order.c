/* Probes of all kinds on one instruction, registered in the order of the parameter: k, j and r, up to eight.
 * Each says its place in that order when it is hit; the first is then registered anew, as the last. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

enum { most = 8 };

static char *kinds = "k";
module_param(kinds, charp, 0444);

static struct kprobe kprobes[most];
static struct jprobe jprobes[most];
static struct kretprobe kretprobes[most];

static int before(struct kprobe *probe, struct pt_regs *regs) {
    printk("k%d\n", (int)(probe - kprobes));
    return 0;
}

static int begins(struct kretprobe_instance *call, struct pt_regs *regs) {
    printk("r%d\n", (int)(call->rp - kretprobes));
    return 0;
}

/* An entry does not know its jprobe. */
#define ENTRY(n)                                                                                                       \
    static int entry##n(int argument) {                                                                                \
        printk("j%d of %d\n", n, argument);                                                                            \
        jprobe_return();                                                                                               \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int entry##n(int)
ENTRY(0);
ENTRY(1);
ENTRY(2);
ENTRY(3);
ENTRY(4);
ENTRY(5);
ENTRY(6);
ENTRY(7);
static int (*const entries[most])(int) = {entry0, entry1, entry2, entry3, entry4, entry5, entry6, entry7};

static int add(int n) {
    kprobes[n] = (struct kprobe){.symbol_name = "do_work", .pre_handler = before};
    jprobes[n] = (struct jprobe){.kp.symbol_name = "do_work", .entry = entries[n]};
    kretprobes[n] = (struct kretprobe){.kp.symbol_name = "do_work", .entry_handler = begins};
    switch (kinds[n]) {
    case 'k': return register_kprobe(&kprobes[n]);
    case 'j': return register_jprobe(&jprobes[n]);
    default: return register_kretprobe(&kretprobes[n]);
    }
}

static void take_out(int n) {
    switch (kinds[n]) {
    case 'k': unregister_kprobe(&kprobes[n]); break;
    case 'j': unregister_jprobe(&jprobes[n]); break;
    default: unregister_kretprobe(&kretprobes[n]);
    }
}

static int first_anew(struct kprobe *probe, struct pt_regs *regs) {
    take_out(0);
    printk("anew %d\n", add(0));
    return 0;
}

static struct kprobe elsewhere = {.symbol_name = "checked", .pre_handler = first_anew};

static int __init order_init(void) {
    int n, error = register_kprobe(&elsewhere);
    for (n = 0; n < most && kinds[n] && error == 0; n++) error = add(n);
    return error;
}

module_init(order_init);
MODULE_LICENSE("GPL");
