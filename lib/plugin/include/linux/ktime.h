/* Times in nanoseconds. In a handler ktime_get() is the monotonic clock as the stopped thread knows it: from entry to
 * return of a call it advances by the call's own time, without that in which the thread was stopped. */
#ifndef KTRACE_LINUX_KTIME_H
#define KTRACE_LINUX_KTIME_H

#include <linux/time.h>
#include <linux/types.h>

typedef s64 ktime_t;

KTRACE_BEGIN
ktime_t ktime_get(void);
ktime_t ktime_get_real(void);
ktime_t ktime_get_boottime(void);
KTRACE_END

static inline ktime_t ktime_set(s64 seconds, unsigned long nanoseconds) {
    return seconds * NSEC_PER_SEC + (s64)nanoseconds;
}
static inline ktime_t ktime_add(ktime_t a, ktime_t b) { return a + b; }
static inline ktime_t ktime_sub(ktime_t a, ktime_t b) { return a - b; }
static inline ktime_t ktime_add_ns(ktime_t a, u64 nanoseconds) { return a + (s64)nanoseconds; }
static inline ktime_t ktime_sub_ns(ktime_t a, u64 nanoseconds) { return a - (s64)nanoseconds; }
static inline ktime_t ns_to_ktime(u64 nanoseconds) { return (s64)nanoseconds; }
static inline s64 ktime_to_ns(ktime_t time) { return time; }
static inline s64 ktime_to_us(ktime_t time) { return time / NSEC_PER_USEC; }
static inline s64 ktime_to_ms(ktime_t time) { return time / NSEC_PER_MSEC; }
static inline s64 ktime_us_delta(ktime_t later, ktime_t earlier) { return ktime_to_us(later - earlier); }
static inline s64 ktime_ms_delta(ktime_t later, ktime_t earlier) { return ktime_to_ms(later - earlier); }
static inline int ktime_compare(ktime_t a, ktime_t b) { return a < b ? -1 : a > b; }
static inline bool ktime_after(ktime_t a, ktime_t b) { return a > b; }
static inline bool ktime_before(ktime_t a, ktime_t b) { return a < b; }
static inline u64 ktime_get_ns(void) { return (u64)ktime_get(); }
static inline u64 ktime_get_real_ns(void) { return (u64)ktime_get_real(); }

#endif
