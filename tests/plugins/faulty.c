/* Each kind of handler, gone wrong: by a read of nowhere, or by a loop. The others of the plugin's run on. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

#include "machine.h"

static char which[16] = "";
module_param_string(which, which, sizeof(which), 0444);
static bool handled; /* the fault_handler mends it */
module_param(handled, bool, 0444);
static bool loops;
module_param(loops, bool, 0444);

static int room = 1;
static unsigned long nowhere = 0x10;
static unsigned went_on[5]; /* by handler: how often it came to its end */

static void goes_wrong(int handler, const char *name) {
    while (loops && strcmp(which, name) == 0) barrier();
    if (strcmp(which, name) == 0) went_on[handler] += read_through(nowhere) - 1;
    went_on[handler]++;
}

static int before(struct kprobe *probe, struct pt_regs *regs) {
    goes_wrong(0, "pre");
    return 0;
}
static void after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags) { goes_wrong(1, "post"); }
static int on_entry(int n) {
    goes_wrong(2, "entry");
    jprobe_return();
    return 0;
}
static int begins(struct kretprobe_instance *call, struct pt_regs *regs) {
    goes_wrong(3, "begins");
    return 0;
}
static int returns(struct kretprobe_instance *call, struct pt_regs *regs) {
    goes_wrong(4, "returns");
    return 0;
}

static int mends(struct kprobe *probe, struct pt_regs *regs, int trap) {
    printk("%s\n", trap_name(trap));
    if (!handled) return 0;
    nowhere = (unsigned long)&room;
    read_from(regs, &room);
    return 1;
}

static struct kprobe instruction = {
    .symbol_name = "recurse", .pre_handler = before, .post_handler = after, .fault_handler = mends};
static struct jprobe entry = {.entry = on_entry, .kp = {.symbol_name = "recurse", .fault_handler = mends}};
static struct kretprobe calls = {.handler = returns,
                                 .entry_handler = begins,
                                 .maxactive = 64,
                                 .kp = {.symbol_name = "recurse", .fault_handler = mends}};

static int __init faulty_init(void) {
    int error = register_kprobe(&instruction);
    if (error == 0) error = register_jprobe(&entry);
    return error ? error : register_kretprobe(&calls);
}

static void __exit faulty_exit(void) {
    printk("pre %u post %u entry %u begins %u returns %u\n", went_on[0], went_on[1], went_on[2], went_on[3],
           went_on[4]);
}

module_init(faulty_init);
module_exit(faulty_exit);
MODULE_LICENSE("GPL");
