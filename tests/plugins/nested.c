/* An inner function that runs while an outer one does: arguments, result, and what a pointer argument led to by then.
 */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>

struct device {
    char name[16];
    int index;
};
struct packet {
    struct device *dev;
    unsigned length;
    struct packet *next;
};
struct result {
    int type;
};

static pid_t inside; /* the thread that is in the outer function */

static int on_handle(struct packet *packet, unsigned key) {
    printk(KERN_INFO "handle is called on %s (index %d) with key %u\n", packet->dev->name, packet->dev->index, key);
    inside = current->pid;
    jprobe_return();
    return 0;
}

static int handle_returns(struct kretprobe_instance *call, struct pt_regs *regs) {
    inside = 0;
    printk("handle gives %d\n", (int)regs_return_value(regs));
    return 0;
}

static int look_up_begins(struct kretprobe_instance *call, struct pt_regs *regs) {
    if (inside != current->pid) return 1;
    *(struct result **)call->data = (struct result *)regs_get_kernel_argument(regs, 1);
    printk("%s: key %lu\n", call->rp->kp.symbol_name, regs_get_kernel_argument(regs, 0));
    return 0;
}

static int look_up_returns(struct kretprobe_instance *call, struct pt_regs *regs) {
    struct result *result = *(struct result **)call->data;
    printk("%s: %d, type %d, by %s, to %s\n", call->rp->kp.symbol_name, (int)regs_return_value(regs), result->type,
           call->task->comm, (void *)instruction_pointer(regs) == call->ret_addr ? "its caller" : "elsewhere");
    return 0;
}

static struct jprobe handle_entry = {.entry = on_handle, .kp.symbol_name = "handle"};
static struct kretprobe handle_return = {.handler = handle_returns, .kp.symbol_name = "handle"};
static struct kretprobe look_up_return = {.entry_handler = look_up_begins,
                                          .handler = look_up_returns,
                                          .data_size = sizeof(struct result *),
                                          .kp.symbol_name = "look_up"};

static int __init nested_init(void) {
    int error = register_jprobe(&handle_entry);
    if (error == 0) error = register_kretprobe(&handle_return);
    if (error == 0) error = register_kretprobe(&look_up_return);
    return error;
}

static void __exit nested_exit(void) {
    unregister_kretprobe(&look_up_return);
    unregister_kretprobe(&handle_return);
    unregister_jprobe(&handle_entry);
}

module_init(nested_init) module_exit(nested_exit) MODULE_LICENSE("GPL");
