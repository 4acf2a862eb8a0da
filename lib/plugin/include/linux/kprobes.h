/* Probes, as Documentation/kprobes.txt of Linux 2.6.31 describes them, on functions of the traced process. */
#ifndef KTRACE_LINUX_KPROBES_H
#define KTRACE_LINUX_KPROBES_H

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/types.h>

typedef u8 kprobe_opcode_t;

struct kprobe;
struct kretprobe;
struct kretprobe_instance;

typedef int (*kprobe_pre_handler_t)(struct kprobe *, struct pt_regs *);
typedef void (*kprobe_post_handler_t)(struct kprobe *, struct pt_regs *, unsigned long flags);
typedef int (*kprobe_fault_handler_t)(struct kprobe *, struct pt_regs *, int trapnr);
typedef int (*kprobe_break_handler_t)(struct kprobe *, struct pt_regs *);
typedef int (*kretprobe_handler_t)(struct kretprobe_instance *, struct pt_regs *);

#define KPROBE_FLAG_GONE 1     /* its module was unloaded */
#define KPROBE_FLAG_DISABLED 2 /* registered, but its handlers are not called */

struct kprobe {
    unsigned long nmissed;
    kprobe_opcode_t *addr;   /* where it is, in the target; set by registering */
    const char *symbol_name; /* or by name; a SPEC of ktrace's without its offset: [MODULE:]SYMBOL */
    unsigned int offset;     /* from the symbol */
    /* Before the instruction. Not 0: it has set the registers, and the instruction is not run. */
    kprobe_pre_handler_t pre_handler;
    /* After it. flags is 0. */
    kprobe_post_handler_t post_handler;
    /* A fault in one of the two, or in the instruction. Not 0: handled. */
    kprobe_fault_handler_t fault_handler;
    kprobe_break_handler_t break_handler; /* never called */
    kprobe_opcode_t opcode;               /* the first byte of the instruction */
    u32 flags;
};

struct jprobe {
    struct kprobe kp;
    void *entry; /* called with the arguments of the probed function; ends with jprobe_return() */
};

struct kretprobe {
    struct kprobe kp;
    kretprobe_handler_t handler;       /* when a call has returned */
    kretprobe_handler_t entry_handler; /* when it begins. Not 0: this call is left alone */
    int maxactive;                     /* calls in flight, at most; 0 and less: max(10, 2 x processors) */
    int nmissed;                       /* calls that were more than that */
    size_t data_size;                  /* of each call's private data */
};

struct kretprobe_instance {
    struct kretprobe *rp;
    kprobe_opcode_t *ret_addr; /* where the call returns to, in the target */
    struct task_struct *task;
    char data[] __attribute__((aligned(16)));
};

#define JPROBE_ENTRY(function) ((void *)(function))

KTRACE_BEGIN
/* 0 or a negative errno. */
int register_kprobe(struct kprobe *probe);
int register_kprobes(struct kprobe **probes, int count);
int register_jprobe(struct jprobe *probe);
int register_jprobes(struct jprobe **probes, int count);
int register_kretprobe(struct kretprobe *probe);
int register_kretprobes(struct kretprobe **probes, int count);
void unregister_kprobe(struct kprobe *probe);
void unregister_kprobes(struct kprobe **probes, int count);
void unregister_jprobe(struct jprobe *probe);
void unregister_jprobes(struct jprobe **probes, int count);
void unregister_kretprobe(struct kretprobe *probe);
void unregister_kretprobes(struct kretprobe **probes, int count);
int enable_kprobe(struct kprobe *probe);
int disable_kprobe(struct kprobe *probe);
void jprobe_return(void) __attribute__((noreturn));
KTRACE_END

static inline int enable_jprobe(struct jprobe *probe) { return enable_kprobe(&probe->kp); }
static inline int disable_jprobe(struct jprobe *probe) { return disable_kprobe(&probe->kp); }
static inline int enable_kretprobe(struct kretprobe *probe) { return enable_kprobe(&probe->kp); }
static inline int disable_kretprobe(struct kretprobe *probe) { return disable_kprobe(&probe->kp); }
static inline struct kretprobe *get_kretprobe(struct kretprobe_instance *call) { return call->rp; }
static inline int kprobe_disabled(const struct kprobe *probe) {
    return (probe->flags & (KPROBE_FLAG_DISABLED | KPROBE_FLAG_GONE)) != 0;
}

#endif
