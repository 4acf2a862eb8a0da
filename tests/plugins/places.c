/* Where a probe is, and whether, while its library comes and goes: printed at each call of a function that stays. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static char *func = "";
module_param(func, charp, 0444);

static unsigned hits;

static int moves(struct kprobe *p, struct pt_regs *regs) {
    hits++;
    if ((unsigned long)p->addr != instruction_pointer(regs)) printk("it is not where it says\n");
    return 0;
}

static struct kprobe mobile = {.pre_handler = moves};

static int stays(struct kprobe *p, struct pt_regs *regs) {
    printk("%u hits, %s\n", hits, !mobile.addr ? "nowhere" : mobile.flags & KPROBE_FLAG_GONE ? "gone" : "there");
    return 0;
}

static struct kprobe fixed = {.symbol_name = "libc.so.6:fgets", .pre_handler = stays};

static int __init places_init(void) {
    int error;
    mobile.symbol_name = func;
    error = register_kprobe(&mobile);
    return error ? error : register_kprobe(&fixed);
}

module_init(places_init);
MODULE_LICENSE("GPL");
