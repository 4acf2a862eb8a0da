/* Variables of each processor: one is enough, since handlers of a plugin run one at a time. */
#ifndef KTRACE_LINUX_PERCPU_H
#define KTRACE_LINUX_PERCPU_H

#include <linux/smp.h>

#define DEFINE_PER_CPU(type, name) __typeof__(type) name
#define DECLARE_PER_CPU(type, name) extern __typeof__(type) name
#define per_cpu(name, cpu) (*((void)(cpu), &(name)))
#define per_cpu_ptr(pointer, cpu) ((void)(cpu), (pointer))
#define this_cpu_ptr(pointer) (pointer)
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < 1; (cpu)++)
#define for_each_online_cpu(cpu) for_each_possible_cpu(cpu)
#define get_cpu_var(name) (name)
#define put_cpu_var(name) ((void)0)
#define __get_cpu_var(name) (name)
#define this_cpu_read(name) (name)
#define this_cpu_write(name, value) ((void)((name) = (value)))
#define this_cpu_inc(name) ((void)(name)++)
#define this_cpu_dec(name) ((void)(name)--)
#define this_cpu_add(name, value) ((void)((name) += (value)))

#endif
