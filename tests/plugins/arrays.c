/* Arrays of each kind: taken back where one of them cannot be registered; NULL, unknown ones and doubles among
 * those that are unregistered; probes that begin disabled. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static unsigned seen[3]; /* k j r */

static int before(struct kprobe *probe, struct pt_regs *regs) {
    seen[0]++;
    return 0;
}

static int on_entry(int n) {
    seen[1]++;
    jprobe_return();
    return 0;
}

static int returns(struct kretprobe_instance *call, struct pt_regs *regs) {
    seen[2]++;
    return 0;
}

#define K                                                                                                              \
    { .symbol_name = "do_work", .pre_handler = before }
#define J                                                                                                              \
    { .kp.symbol_name = "do_work", .entry = on_entry }
#define R                                                                                                              \
    { .kp.symbol_name = "do_work", .handler = returns }
static struct kprobe k[2] = {K, K}, bad_k = {.symbol_name = "no_such_function"};
static struct jprobe j[2] = {J, J}, bad_j = {.kp.symbol_name = "no_such_function", .entry = on_entry};
static struct kretprobe r[2] = {R, R}, bad_r = {.kp.symbol_name = "no_such_function", .handler = returns};

static void none_of_a_bad_array(void) {
    struct kprobe *ks[] = {&k[0], &k[1], &bad_k};
    struct jprobe *js[] = {&j[0], &bad_j, &j[1]};
    struct kretprobe *rs[] = {&bad_r, &r[0], &r[1]};
    printk("arrays %d %d %d\n", register_kprobes(ks, 3), register_jprobes(js, 3), register_kretprobes(rs, 3));
    printk("addresses %d %d %d\n", k[0].addr || k[1].addr, j[0].kp.addr || j[1].kp.addr, r[0].kp.addr || r[1].kp.addr);
}

static void none_of_an_array_with_one_twice(void) {
    struct kprobe *ks[] = {&k[0], &k[0]};
    struct jprobe *js[] = {&j[0], &j[1], &j[0]};
    struct kretprobe *rs[] = {&r[1], &r[1]};
    printk("twice %d %d %d\n", register_kprobes(ks, 2), register_jprobes(js, 3), register_kretprobes(rs, 2));
}

static void by_name_and_address(void) {
    struct jprobe both_j = J;
    struct kretprobe both_r = R;
    both_j.kp.addr = both_r.kp.addr = (kprobe_opcode_t *)kallsyms_lookup_name("do_work");
    printk("both %d %d\n", register_jprobe(&both_j), register_kretprobe(&both_r));
    both_j.kp.symbol_name = both_r.kp.symbol_name = NULL;
    printk("address %d %d", register_jprobe(&both_j), register_kretprobe(&both_r));
    unregister_jprobe(&both_j);
    unregister_kretprobe(&both_r);
    printk(KERN_CONT ", NULL %d %d\n", register_jprobe(NULL), register_kretprobe(NULL));
}

static int switches(struct kprobe *probe, struct pt_regs *regs) {
    struct kprobe *ks[] = {&k[0], NULL, &bad_k, &k[0]};
    struct jprobe *js[] = {&bad_j, &j[0], NULL};
    struct kretprobe *rs[] = {NULL, &bad_r, &r[0]};
    int n = (int)regs_get_kernel_argument(regs, 0);
    printk("%d: seen %u %u %u\n", n, seen[0], seen[1], seen[2]);
    if (n == 1) printk("enable %d %d %d\n", enable_kprobe(&k[0]), enable_jprobe(&j[0]), enable_kretprobe(&r[0]));
    if (n == 2) {
        printk("disable %d %d %d, ", disable_kprobe(&k[1]), disable_jprobe(&j[1]), disable_kretprobe(&r[1]));
        printk(KERN_CONT "flags %u %u %u\n", k[1].flags, j[1].kp.flags, r[1].kp.flags);
    }
    if (n != 3) return 0;
    bad_k.addr = bad_j.kp.addr = bad_r.kp.addr = (kprobe_opcode_t *)16;
    unregister_kprobes(ks, 4);
    unregister_jprobes(js, 3);
    unregister_kretprobes(rs, 3);
    printk("cleared %d %d %d\n", !bad_k.addr, !bad_j.kp.addr, !bad_r.kp.addr);
    /* One that is there twice is unknown the second time. */
    printk("and %d, the others %d %d\n", !k[0].addr, j[0].kp.addr != NULL, r[0].kp.addr != NULL);
    k[0].addr = NULL;
    printk("two again %d", register_kprobe(&k[0]));
    printk(KERN_CONT " %d\n", register_kprobe(&bad_k));
    return 0;
}

static struct kprobe between = {.symbol_name = "checked", .pre_handler = switches};

static int __init arrays_init(void) {
    struct kprobe *ks[] = {&k[0], &k[1]};
    struct jprobe *js[] = {&j[0], &j[1]};
    struct kretprobe *rs[] = {&r[0], &r[1]};
    none_of_a_bad_array();
    none_of_an_array_with_one_twice();
    by_name_and_address();
    k[0].flags = j[0].kp.flags = r[0].kp.flags = KPROBE_FLAG_DISABLED;
    printk("good %d %d %d\n", register_kprobes(ks, 2), register_jprobes(js, 2), register_kretprobes(rs, 2));
    return register_kprobe(&between);
}

module_init(arrays_init);
MODULE_LICENSE("GPL");
