/* The results of registering, in all the ways in which it can be done wrong or right. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static unsigned hits[4];
static int hit(struct kprobe *probe, struct pt_regs *regs);

static struct kprobe one = {.symbol_name = "do_work", .pre_handler = hit};
static struct kprobe two = {.symbol_name = "do_work", .pre_handler = hit};
static struct kprobe three = {.symbol_name = "do_work", .pre_handler = hit, .flags = KPROBE_FLAG_DISABLED};
static struct kprobe bad = {.symbol_name = "no_such_function"};
static struct kprobe never = {.symbol_name = "do_work"};
static struct kprobe late = {.symbol_name = "do_work", .pre_handler = hit};

static int hit(struct kprobe *probe, struct pt_regs *regs) {
    int which = probe == &one ? 0 : probe == &two ? 1 : probe == &three ? 2 : 3;
    hits[which]++;
    printk("hit %d\n", which);
    if (probe == &one && hits[0] == 2) printk("enabled: %d\n", enable_kprobe(&three));
    if (probe == &one && hits[0] == 3) printk("late: %d\n", register_kprobe(&late));
    if (probe == &two && hits[1] == 4) {
        unregister_kprobe(&two); /* itself */
        unregister_kprobe(&three);
        printk("disabled: %d\n", disable_kprobe(&late));
    }
    return 0;
}

static int __init rules_init(void) {
    static struct kprobe both = {.symbol_name = "do_work", .addr = (kprobe_opcode_t *)1};
    static struct kprobe neither, unmapped = {.addr = (kprobe_opcode_t *)16};
    static struct kprobe inside = {.symbol_name = "do_work", .offset = 2};
    static struct kretprobe not_entry = {.kp = {.symbol_name = "do_work", .offset = 4}};
    struct kprobe *array[] = {&one, &two, &bad}, *good[] = {&two, &three};
    printk("both %d neither %d ", register_kprobe(&both), register_kprobe(&neither));
    printk("unmapped %d inside %d\n", register_kprobe(&unmapped), register_kprobe(&inside));
    printk("NULL %d none %d\n", register_kprobe(NULL), register_kprobes(array, 0));
    printk("not entry %d\n", register_kretprobe(&not_entry));
    printk("array %d, ", register_kprobes(array, 3));
    printk("rolled back %d %d\n", one.addr == NULL, two.addr == NULL);
    printk("one %d, ", register_kprobe(&one));
    printk("the rest %d\n", register_kprobes(good, 2));
    printk("again %d, opcode %d\n", register_kprobe(&one), one.opcode == *one.addr);
    never.addr = (kprobe_opcode_t *)1;
    unregister_kprobe(&never);
    unregister_kprobe(NULL);
    printk("never %p, disable %d\n", never.addr, disable_kprobe(&never));
    return 0;
}

static void __exit rules_exit(void) {
    unregister_kprobe(&one);
    printk("one stays at an address: %d; hits %u %u %u %u\n", one.addr != NULL, hits[0], hits[1], hits[2], hits[3]);
}

module_init(rules_init);
module_exit(rules_exit);
MODULE_LICENSE("GPL");
