/* The thread that a handler runs for. */
#ifndef KTRACE_LINUX_SCHED_H
#define KTRACE_LINUX_SCHED_H

#include <linux/types.h>

#define TASK_COMM_LEN 16

/* Not NULL for anything that ktrace traces: threads of the kernel have none. */
struct mm_struct {
    pid_t owner; /* the process */
};

struct task_struct {
    pid_t pid;  /* the thread */
    pid_t tgid; /* its process */
    struct mm_struct *mm, *active_mm;
    unsigned int flags;
    struct mm_struct own_mm;
    /* On a page of its own: it is read from the thread when a handler looks at it. */
    char comm[TASK_COMM_LEN] __attribute__((aligned(4096)));
};

KTRACE_BEGIN
struct task_struct *ktrace_current(void);
int ktrace_cpu(void);
KTRACE_END

#define current ktrace_current()
#define get_current() ktrace_current()
#define smp_processor_id() ktrace_cpu()
#define raw_smp_processor_id() ktrace_cpu()

static inline pid_t task_pid_nr(const struct task_struct *task) { return task->pid; }
static inline pid_t task_tgid_nr(const struct task_struct *task) { return task->tgid; }

#endif
