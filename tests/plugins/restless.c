/* Under load: a handler takes its neighbours out and puts them in again, switches them off and on, all the time. A
 * probe that is not registered, or is off, must not run. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static bool kprobe_is_on = true, kretprobe_is_on = true;
static unsigned long hits, calls, begun, returned, orders, failed, wrong;

static int counts(struct kprobe *probe, struct pt_regs *regs) {
    calls++;
    wrong += !kprobe_is_on;
    return 0;
}

static int begins(struct kretprobe_instance *call, struct pt_regs *regs) {
    begun++;
    wrong += !kretprobe_is_on;
    *(unsigned long *)call->data = begun;
    return 0;
}

static int returns(struct kretprobe_instance *call, struct pt_regs *regs) {
    returned++;
    wrong += !kretprobe_is_on || *(unsigned long *)call->data == 0 || *(unsigned long *)call->data > begun;
    return 0;
}

static struct kprobe neighbour = {.symbol_name = "do_work", .pre_handler = counts};
static struct kretprobe caller = {.kp.symbol_name = "do_work",
                                  .entry_handler = begins,
                                  .handler = returns,
                                  .data_size = sizeof(unsigned long),
                                  .maxactive = 64};

static int orders_about(struct kprobe *probe, struct pt_regs *regs) {
    if (++hits % 16 != 0) return 0;
    switch (orders++ % 6) {
    case 0:
        unregister_kretprobe(&caller);
        kretprobe_is_on = false;
        break;
    case 1:
        failed += disable_kprobe(&neighbour) != 0;
        kprobe_is_on = false;
        break;
    case 2:
        caller.kp.addr = NULL;
        failed += register_kretprobe(&caller) != 0;
        kretprobe_is_on = true;
        break;
    case 3:
        failed += enable_kprobe(&neighbour) != 0;
        kprobe_is_on = true;
        break;
    case 4: unregister_kprobe(&neighbour); break;
    case 5:
        neighbour.addr = NULL;
        failed += register_kprobe(&neighbour) != 0;
        break;
    }
    return 0;
}

static struct kprobe first = {.symbol_name = "do_work", .pre_handler = orders_about};

static int __init restless_init(void) {
    int error = register_kprobe(&first);
    if (error == 0) error = register_kprobe(&neighbour);
    return error ? error : register_kretprobe(&caller);
}

static void __exit restless_exit(void) {
    unregister_kprobe(&first);
    printk("hits %lu, orders %lu, failed %lu, wrong %lu; seen %d\n", hits, orders, failed, wrong,
           calls && calls <= hits && begun && begun <= hits && returned && returned <= begun);
}

module_init(restless_init);
module_exit(restless_exit);
MODULE_LICENSE("GPL");
