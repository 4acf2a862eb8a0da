/* Written as for a kernel, and nothing of it for ktrace: parameters, messages, times and registers as modules have
 * them. A probe of each kind on the function `func`. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/sched.h>

static char function[NAME_MAX] = "no_such_function";
module_param_string(func, function, NAME_MAX, S_IRUGO);
MODULE_PARM_DESC(func, "what is probed");

struct stamp {
    ktime_t began;
};

static int before(struct kprobe *p, struct pt_regs *regs) {
#ifdef CONFIG_X86
    printk(KERN_INFO "before: p->addr = 0x%p, ip = %lx, flags = 0x%lx\n", p->addr, regs->ip, regs->flags);
#endif
#ifdef CONFIG_ARM64
    printk(KERN_INFO "before: p->addr = 0x%p, pc = %lx, pstate = 0x%lx\n", p->addr, (long)regs->pc, (long)regs->pstate);
#endif
#ifdef CONFIG_PPC
    printk(KERN_INFO "before: nip = 0x%lx, msr = 0x%lx\n", regs->nip, regs->msr);
#endif
    dump_stack();
    return 0;
}

static void after(struct kprobe *p, struct pt_regs *regs, unsigned long flags) {
#ifdef CONFIG_X86
    printk(KERN_INFO "after: p->addr = 0x%p, flags = 0x%lx\n", p->addr, regs->flags);
#endif
#ifdef CONFIG_ARM64
    printk(KERN_INFO "after: p->addr = 0x%p, pstate = 0x%lx\n", p->addr, (long)regs->pstate);
#endif
}

static int faults(struct kprobe *p, struct pt_regs *regs, int trapnr) {
    printk(KERN_INFO "fault: p->addr = 0x%p, trap #%d\n", p->addr, trapnr);
    return 0;
}

static int on_entry(int n, int __user *unused) {
    printk(KERN_INFO "entry: n = %d in %s\n", n, current->comm);
    jprobe_return();
    return 0;
}

static int begins(struct kretprobe_instance *ri, struct pt_regs *regs) {
    if (!current->mm) return 1;
    ((struct stamp *)ri->data)->began = ktime_get();
    return 0;
}

static int returns(struct kretprobe_instance *ri, struct pt_regs *regs) {
    int value = regs_return_value(regs);
    s64 took = ktime_to_ns(ktime_sub(ktime_get(), ((struct stamp *)ri->data)->began));
    printk(KERN_INFO "%s returned %d after %lld ns\n", function, value, (long long)took);
    return 0;
}

static struct kprobe kp;
static struct jprobe jp = {.entry = JPROBE_ENTRY(on_entry), .kp = {.symbol_name = function}};
static struct kretprobe rp = {
    .handler = returns, .entry_handler = begins, .data_size = sizeof(struct stamp), .maxactive = 20};

static int __init module_starts(void) {
    int error;
    kp.pre_handler = before;
    kp.post_handler = after;
    kp.fault_handler = faults;
    kp.symbol_name = rp.kp.symbol_name = function;
    if ((error = register_kprobe(&kp)) < 0 || (error = register_jprobe(&jp)) < 0 ||
        (error = register_kretprobe(&rp)) < 0)
        return error;
    printk(KERN_INFO "planted at %p, %p and %s: %p\n", kp.addr, jp.kp.addr, rp.kp.symbol_name, rp.kp.addr);
    return 0;
}

static void __exit module_ends(void) {
    unregister_kretprobe(&rp);
    unregister_jprobe(&jp);
    unregister_kprobe(&kp);
    printk(KERN_INFO "kprobe at %p unregistered\n", kp.addr);
    printk(KERN_INFO "Missed probing %d instances of %s\n", rp.nmissed, rp.kp.symbol_name);
}

module_init(module_starts) module_exit(module_ends) MODULE_LICENSE("GPL");
