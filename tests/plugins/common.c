/* The rest of a module: counters, variables of a processor, locks, lists, assertions; under the names of the
 * headers where kernel sources of all times look for them. */
#include <linux/atomic.h>
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/hardirq.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/linkage.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/sched/debug.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/stringify.h>
#include <linux/timekeeping.h>
#include <linux/version.h>

#include <asm/atomic.h>
#include <asm/current.h>
#include <asm/uaccess.h>

#define NAME do_work

struct seen {
    int argument;
    struct list_head in_list;
};

static atomic_t hits = ATOMIC_INIT(0);
static DEFINE_PER_CPU(unsigned long, sum);
static DEFINE_SPINLOCK(lock);
static DEFINE_MUTEX(mutex);
static LIST_HEAD(list);

static int __kprobes before(struct kprobe *p, struct pt_regs *regs) {
    unsigned long flags;
    struct seen *seen = kmalloc(sizeof(*seen), GFP_ATOMIC);
    int n = (int)regs_get_kernel_argument(regs, 0);
    WARN_ON_ONCE(n > 0);
    if (in_interrupt() || in_nmi() || !seen) return 0;
    seen->argument = n;
    spin_lock_irqsave(&lock, flags);
    list_add_tail(&seen->in_list, &list);
    spin_unlock_irqrestore(&lock, flags);
    atomic_inc(&hits);
    preempt_disable();
    this_cpu_add(sum, n);
    preempt_enable();
    printk_ratelimited(KERN_INFO "%s: %d\n", __stringify(NAME), current->pid == current->tgid);
    return 0;
}
NOKPROBE_SYMBOL(before);

static struct kprobe kp = {.symbol_name = __stringify(NAME), .pre_handler = before};

static int __init common_init(void) {
    int ret = register_kprobe(&kp);
    if (ret < 0) pr_err("register_kprobe failed, returned %d\n", ret);
    return ret;
}

static void __exit common_exit(void) {
    struct seen *seen, *next;
    unsigned long total = 0;
    int cpu, listed = 0;
    unregister_kprobe(&kp);
    for_each_online_cpu(cpu) total += per_cpu(sum, cpu);
    mutex_lock(&mutex);
    list_for_each_entry_safe(seen, next, &list, in_list) {
        listed += seen->argument;
        list_del(&seen->in_list);
        kfree(seen);
    }
    mutex_unlock(&mutex);
    rcu_read_lock();
    printk("%d hits, sum %lu, listed %d, empty %d, SIGKILL %d\n", atomic_read(&hits), total, listed, list_empty(&list),
           SIGKILL);
    rcu_read_unlock();
}

module_init(common_init);
module_exit(common_exit);
MODULE_LICENSE("GPL v2");
MODULE_AUTHOR("nobody");
MODULE_DESCRIPTION("what modules use");
