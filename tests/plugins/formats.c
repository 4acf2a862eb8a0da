/* printk as the kernel formats, and what else a module calls. */
#include <linux/err.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

static int numbers[4];
static unsigned int count;
module_param_array(numbers, int, &count, 0444);
static bool flag;
module_param(flag, bool, 0444);
static char *text = "none";
static char *volatile nothing;
module_param(text, charp, 0444);

struct item {
    int value;
    struct list_head in_list;
};

static void lists(void) {
    LIST_HEAD(list);
    struct item items[3], *each;
    int i, sum = 0;
    for (i = 0; i < 3; i++) {
        items[i].value = i + 1;
        list_add_tail(&items[i].in_list, &list);
    }
    list_for_each_entry(each, &list, in_list) sum = sum * 10 + each->value;
    printk("list %d, first %d\n", sum, list_first_entry(&list, struct item, in_list)->value);
}

static void memory(void) {
    char *copy = kstrdup("a copy", GFP_KERNEL), small[4];
    u64 *zeros = kcalloc(4, sizeof(u64), GFP_KERNEL);
    long number = 0;
    printk("%s %llu\n", copy, zeros[3]);
    int error = kstrtol("-12\n", 10, &number), other = 0;
    printk("%zd %s, %d %ld, %d\n", strscpy(small, "too long", sizeof(small)), small, error, number,
           kstrtoint("12x", 10, &other));
    printk("IS_ERR %d %ld\n", IS_ERR(ERR_PTR(-ENOMEM)), PTR_ERR(ERR_PTR(-ENOMEM)));
    printk("min %d max %d align %d of %zu\n", min(3, 4), max(3, 4), ALIGN(5, 8), ARRAY_SIZE(numbers));
    kfree(copy);
    kfree(zeros);
}

static int before(struct kprobe *probe, struct pt_regs *regs) {
    char name[4];
    printk("%pS\n", probe->addr);
    printk("%ps %pF\n", probe->addr, (void *)instruction_pointer(regs));
    dump_stack();
    printk("%d %d %s\n", current->pid == current->tgid, current->mm != NULL, current->comm);
    printk("%ld %d %ld\n", strncpy_from_user(name, (char *)kallsyms_lookup_name("no_such_name"), sizeof(name)),
           (name[0] = 101), strncpy_from_user(name, (char *)8, 4));
    return 0;
}

static struct kprobe probe = {.symbol_name = "do_work", .pre_handler = before};

static int __init formats_init(void) {
    static const unsigned char bytes[] = {192, 168, 1, 254, 0xab, 0xcd};
    printk(KERN_WARNING "numbers %u: %d %d flag %d text %s\n", count, numbers[0], numbers[1], flag, text);
    printk("%p|%20p|%-18p|%px\n", (void *)0x1234, (void *)0x1234, (void *)0x1234, (void *)0x1234);
    printk("%5d|%-5d|%05d|%+d|%x|%#x|%X|%o|%c|%%\n", 42, 42, 42, 42, 255, 255, 255, 8, 'c');
    printk("%hhd|%hd|%ld|%lld|%zu|%u|%lu\n", 300, 70000, -1L, -1LL, (size_t)7, 4000000000u, 18446744073709551615ul);
    printk("%s|%10s|%-10s|%.3s|%*d|%s\n", "text", "right", "left", "cut off", 4, 7, nothing);
    printk("%pI4 %pi4 %pM %*ph %6phC\n", bytes, bytes, bytes, 3, bytes, bytes);
    printk("%.2f %g\n", 3.14159, 1e10);
    printk("one line, ");
    printk(KERN_CONT "in parts\n");
    printk(KERN_INFO "unfinished");
    printk(KERN_ERR "another\nand a third\n");
    lists();
    memory();
    return register_kprobe(&probe);
}

module_init(formats_init);
MODULE_LICENSE("GPL");
