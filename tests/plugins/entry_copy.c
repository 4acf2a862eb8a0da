/* A jprobe runs on a copy of the registers and of the stack's top: this one ruins both. A probe before it and one
 * behind it show whether the thread's own are as they were. */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/string.h>

enum { words = 64 }; /* of the stack, from its top: the return address, arguments, what the caller keeps there */

static struct pt_regs registers_before;
static unsigned long stack_before[words];

static int before(struct kprobe *probe, struct pt_regs *regs) {
    registers_before = *regs;
    memcpy(stack_before, (void *)user_stack_pointer(regs), sizeof stack_before);
    return 0;
}

static double ruins(int a, double b, const char *c, float d, long e, unsigned char f, void *g, long long h, double i,
                    short j, long double k) {
    volatile unsigned long *frame = __builtin_frame_address(0);
    int n;
#ifdef CONFIG_X86
    __asm__ volatile("mov $-1, %%rbx\n mov $-1, %%r12\n mov $-1, %%r13\n mov $-1, %%r14\n mov $-1, %%r15\n"
                     "mov $-1, %%rdi\n mov $-1, %%rsi\n mov $-1, %%r8\n mov $-1, %%r9\n mov $-1, %%rax\n"
                     "pcmpeqd %%xmm0, %%xmm0\n pcmpeqd %%xmm1, %%xmm1\n pcmpeqd %%xmm2, %%xmm2\n" ::
                         : "rbx", "r12", "r13", "r14", "r15", "rdi", "rsi", "r8", "r9", "rax", "xmm0", "xmm1", "xmm2");
#else
    __asm__ volatile("mov x19, #-1\n mov x20, #-1\n mov x21, #-1\n mov x28, #-1\n mov x8, #-1\n mov x9, #-1\n"
                     "mov x0, #-1\n mov x1, #-1\n mov x2, #-1\n mov x7, #-1\n"
                     "movi v0.2d, #-1\n movi v1.2d, #-1\n movi v8.2d, #-1\n" ::
                         : "x19", "x20", "x21", "x28", "x8", "x9", "x0", "x1", "x2", "x7", "v0", "v1", "v8");
#endif
    /* The saved frame pointer, the return address, the arguments on the stack, and more. */
    for (n = 0; n < words; n++) frame[n] = ~frame[n];
    printk("ruined %d words\n", n);
    jprobe_return();
    return 0;
}

static int behind(struct kprobe *probe, struct pt_regs *regs) {
    printk("registers %d stack %d\n", memcmp(&registers_before, regs, sizeof *regs) == 0,
           memcmp(stack_before, (void *)user_stack_pointer(regs), sizeof stack_before) == 0);
    return 0;
}

static struct kprobe first = {.symbol_name = "mixed", .pre_handler = before};
static struct jprobe second = {.entry = ruins, .kp.symbol_name = "mixed"};
static struct kprobe third = {.symbol_name = "mixed", .pre_handler = behind};

static int __init copy_init(void) {
    int error = register_kprobe(&first);
    if (error == 0) error = register_jprobe(&second);
    return error ? error : register_kprobe(&third);
}

module_init(copy_init);
MODULE_LICENSE("GPL");
