/* A jprobe sees all arguments, in registers and on the stack; its changes to them stay with it. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static double on_mixed(int a, double b, const char *c, float d, long e, unsigned char f, void *g, long long h, double i,
                       short j, long double k) {
    printk("a=%d b=%g c=%s d=%g e=%ld f=%u g=%pS h=%lld i=%g j=%d k=%g\n", a, b, c, d, e, f, g, h, i, j, (double)k);
    a = 1;
    h = 2;
    j = 3;
    k = 4;
    barrier();
    printk("now h=%lld j=%d k=%g\n", *(volatile long long *)&h, *(volatile short *)&j,
           (double)*(volatile long double *)&k);
    jprobe_return();
    return 0;
}

static double again(int a, double b) {
    printk("second: a=%d b=%g\n", a, b);
    return 0; /* without jprobe_return */
}

static struct jprobe first = {.entry = on_mixed, .kp.symbol_name = "mixed"};
static struct jprobe second = {.entry = again, .kp.symbol_name = "mixed"};
static struct jprobe *both[] = {&first, &second};

static int __init arguments_init(void) { return register_jprobes(both, ARRAY_SIZE(both)); }

module_init(arguments_init);
MODULE_LICENSE("GPL");
