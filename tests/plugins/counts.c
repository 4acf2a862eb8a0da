// Counts the calls of a function; prints how many when it leaves.
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static char *func = "do_work";
module_param(func, charp, S_IRUGO);

static unsigned long calls;

static int count(struct kprobe *p, struct pt_regs *regs) {
    calls++;
    return 0;
}

static struct kprobe probe = {.pre_handler = count};

static int __init counts_init(void) {
    probe.symbol_name = func;
    return register_kprobe(&probe);
}

static void __exit counts_exit(void) {
    unregister_kprobe(&probe);
    printk(KERN_INFO "%s was called %lu times\n", func, calls);
}

module_init(counts_init) module_exit(counts_exit) MODULE_LICENSE("GPL");
