/* Handlers that go wrong, each in its way. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"

static char *how = "fault";
module_param(how, charp, 0444);

static volatile int *volatile nowhere = (int *)0x10;

/* As long as that by the processor's time, which is not that of a busy machine. */
static void runs_for(long ms) {
    struct timespec now;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
}

static int goes_wrong(struct kprobe *probe, struct pt_regs *regs) {
    if (strcmp(how, "fault") == 0) return *nowhere;
    if (strcmp(how, "handled") == 0) return read_through((unsigned long)nowhere);
    if (strcmp(how, "wild") == 0) return *(volatile int *)0x1234567890abcdefUL;
    if (strcmp(how, "jump") == 0) return ((int (*)(void))probe->addr)();
    if (strcmp(how, "divide") == 0) return 1 / (int)(instruction_pointer(regs) == 0);
    for (volatile int i = 0; strcmp(how, "loop") == 0; i++) barrier();
    while (strcmp(how, "ask") == 0) { /* not a moment without a question to ktrace */
        int there;
        if (copy_from_user(&there, (void *)nowhere, sizeof there) == 0) break;
    }
    while (strcmp(how, "sleep") == 0) pause();
    if (strcmp(how, "long") == 0) runs_for(900);
    BUG_ON(strcmp(how, "bug") == 0);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "exit") == 0) _exit(1);
    if (strcmp(how, "overflow") == 0) {
        static int (*volatile again)(struct kprobe *, struct pt_regs *) = goes_wrong;
        volatile char big[65536];
        big[0] = 1;
        return again(probe, regs) + big[0];
    }
    return 0;
}

static int fixes(struct kprobe *probe, struct pt_regs *regs, int trap) {
    static int room;
    if (strcmp(how, "handled") != 0) return 0;
    printk("%s at %ps\n", trap_name(trap), (void *)instruction_pointer(regs));
    read_from(regs, &room);
    return 1;
}

static int counted;
static int other(struct kprobe *probe, struct pt_regs *regs) {
    counted++;
    return 0;
}

static struct kprobe bad = {.symbol_name = "do_work", .pre_handler = goes_wrong, .fault_handler = fixes};
static struct kprobe good = {.symbol_name = "do_work", .pre_handler = other};

static int __init bad_init(void) {
    int error = register_kprobe(&bad);
    return error ? error : register_kprobe(&good);
}

static void __exit bad_exit(void) { printk("the other one ran %d times\n", counted); }

module_init(bad_init);
module_exit(bad_exit);
MODULE_LICENSE("GPL");
