// A handler that throws. Plugins are C; one in C++ works as well.
#include <stdexcept>

#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static int throws(struct kprobe *, struct pt_regs *) { throw std::runtime_error("no such thing"); }

static struct kprobe probe;

static int throws_init() {
    probe.symbol_name = "do_work";
    probe.pre_handler = throws;
    return register_kprobe(&probe);
}

static void throws_exit() { printk("left\n"); }

extern "C" {
module_init(throws_init);
module_exit(throws_exit);
}
MODULE_LICENSE("GPL");
