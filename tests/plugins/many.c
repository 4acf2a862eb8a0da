/* A thousand probes as one array, taken out while they are hit. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>

#define COUNT 1000

static struct kprobe probes[COUNT];
static struct kprobe *array[COUNT];
static unsigned long hits;

static int hit(struct kprobe *probe, struct pt_regs *regs) {
    hits++;
    return 0;
}

static int __init many_init(void) {
    int i;
    for (i = 0; i < COUNT; i++) {
        probes[i].symbol_name = "do_work";
        probes[i].pre_handler = hit;
        array[i] = &probes[i];
    }
    return register_kprobes(array, COUNT);
}

static void __exit many_exit(void) {
    unregister_kprobes(array, COUNT);
    printk("%lu hits\n", hits);
}

module_init(many_init);
module_exit(many_exit);
MODULE_LICENSE("GPL");
