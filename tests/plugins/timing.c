/* How long a function takes: each call, and all of them at the end. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/module.h>

static char *func = "do_work";
module_param(func, charp, S_IRUGO);
MODULE_PARM_DESC(func, "the function that is timed");
static int limit = 4;
module_param_named(maxactive, limit, int, 0444);

struct started {
    ktime_t at;
};

static u64 calls, total, impossible;

static int begins(struct kretprobe_instance *call, struct pt_regs *regs) {
    ((struct started *)call->data)->at = ktime_get();
    return 0;
}

static int returns(struct kretprobe_instance *call, struct pt_regs *regs) {
    s64 took = ktime_to_ns(ktime_sub(ktime_get(), ((struct started *)call->data)->at));
    calls++;
    total += took;
    if (took < 0) impossible++;
    return 0;
}

static struct kretprobe timed = {.entry_handler = begins, .handler = returns, .data_size = sizeof(struct started)};

static int __init timing_init(void) {
    timed.kp.symbol_name = func;
    timed.maxactive = limit;
    return register_kretprobe(&timed);
}

static void __exit timing_exit(void) {
    unregister_kretprobe(&timed);
    pr_info("%s: calls %llu total %llu ns missed %d, %llu impossible\n", func, calls, total, timed.nmissed, impossible);
}

module_init(timing_init);
module_exit(timing_exit);
MODULE_LICENSE("GPL");
