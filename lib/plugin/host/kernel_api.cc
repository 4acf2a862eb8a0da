// The kernel's functions for plugins beyond probes and printk: memory, texts, numbers, times, the target's memory and
// symbols.
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <malloc.h>
#include <sys/time.h>

#include "plugin/host/clock.h"
#include "plugin/host/format.h"
#include "plugin/host/guard.h"
#include "plugin/host/turns.h"

#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

using namespace ktrace::plugin;
using namespace ktrace::plugin::host;

namespace {

bool is_own(const void *at, unsigned long size) {
    auto start = reinterpret_cast<std::uint64_t>(at);
    return start < window.start + window.size && window.start < start + size;
}

/// Memory is the host's own business: a late handler is not ended in the middle of it.
template <class F> auto uninterrupted(F &&get) {
    auto got = [&] {
        Critical section;
        return get();
    }();
    leave_if_late();
    return got;
}

template <class T> int parse(const char *text, unsigned base, T *result, long long least, unsigned long long most) {
    char *end = nullptr;
    errno = 0;
    bool negative = *text == '-';
    long long as_signed = negative ? std::strtoll(text, &end, static_cast<int>(base)) : 0;
    unsigned long long value = negative ? 0 : std::strtoull(text, &end, static_cast<int>(base));
    if (errno == ERANGE || (negative ? as_signed < least : value > most)) return -ERANGE;
    if (end == text || (*end != 0 && !(*end == '\n' && end[1] == 0))) return -EINVAL;
    *result = negative ? static_cast<T>(as_signed) : static_cast<T>(value);
    return 0;
}

} // namespace

extern "C" {

void *kmalloc(size_t size, gfp_t flags) {
    return uninterrupted([&] { return (flags & __GFP_ZERO) ? std::calloc(1, size) : std::malloc(size); });
}
void *kzalloc(size_t size, gfp_t flags) { return kmalloc(size, flags | __GFP_ZERO); }
void *kcalloc(size_t count, size_t size, gfp_t) {
    return uninterrupted([&] { return std::calloc(count, size); });
}
void *kmalloc_array(size_t count, size_t size, gfp_t flags) {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? nullptr : kmalloc(bytes, flags);
}
void *krealloc(const void *memory, size_t size, gfp_t) {
    return uninterrupted([&] { return std::realloc(const_cast<void *>(memory), size); });
}
void kfree(const void *memory) {
    uninterrupted([&] {
        std::free(const_cast<void *>(memory));
        return 0;
    });
}
char *kstrdup(const char *text, gfp_t flags) {
    return text ? static_cast<char *>(kmemdup(text, std::strlen(text) + 1, flags)) : nullptr;
}
void *kmemdup(const void *memory, size_t size, gfp_t flags) {
    void *copy = kmalloc(size, flags);
    return copy ? std::memcpy(copy, memory, size) : nullptr;
}
void *vmalloc(unsigned long size) { return kmalloc(size, 0); }
void *vzalloc(unsigned long size) { return kzalloc(size, 0); }
void vfree(const void *memory) { kfree(memory); }

int ktrace_vsnprintf(char *into, size_t size, const char *format, va_list arguments) {
    return format_text(into, size, format, arguments);
}
int ktrace_snprintf(char *into, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = format_text(into, size, format, arguments);
    va_end(arguments);
    return length;
}
int ktrace_sprintf(char *into, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = format_text(into, INT_MAX, format, arguments);
    va_end(arguments);
    return length;
}
int vscnprintf(char *into, size_t size, const char *format, va_list arguments) {
    int length = format_text(into, size, format, arguments);
    if (size == 0) return 0;
    return static_cast<size_t>(length) < size ? length : static_cast<int>(size - 1);
}
int scnprintf(char *into, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vscnprintf(into, size, format, arguments);
    va_end(arguments);
    return length;
}
int ktrace_sscanf(const char *from, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int read = std::vsscanf(from, format, arguments);
#pragma GCC diagnostic pop
    va_end(arguments);
    return read;
}

unsigned long simple_strtoul(const char *text, char **end, unsigned base) {
    return std::strtoul(text, end, static_cast<int>(base));
}
long simple_strtol(const char *text, char **end, unsigned base) {
    return std::strtol(text, end, static_cast<int>(base));
}
unsigned long long simple_strtoull(const char *text, char **end, unsigned base) {
    return std::strtoull(text, end, static_cast<int>(base));
}
long long simple_strtoll(const char *text, char **end, unsigned base) {
    return std::strtoll(text, end, static_cast<int>(base));
}
int kstrtoul(const char *text, unsigned base, unsigned long *result) { return parse(text, base, result, 0, ULONG_MAX); }
int kstrtol(const char *text, unsigned base, long *result) { return parse(text, base, result, LONG_MIN, LONG_MAX); }
int kstrtoint(const char *text, unsigned base, int *result) { return parse(text, base, result, INT_MIN, INT_MAX); }
int kstrtouint(const char *text, unsigned base, unsigned *result) { return parse(text, base, result, 0, UINT_MAX); }

#if !__GLIBC_PREREQ(2, 38)
size_t strlcpy(char *into, const char *from, size_t size) {
    size_t length = std::strlen(from);
    if (size == 0) return length;
    size_t copied = length < size ? length : size - 1;
    std::memcpy(into, from, copied);
    into[copied] = 0;
    return length;
}
size_t strlcat(char *into, const char *from, size_t size) {
    size_t used = ::strnlen(into, size);
    return used == size ? size + std::strlen(from) : used + strlcpy(into + used, from, size - used);
}
#endif
ssize_t strscpy(char *into, const char *from, size_t size) {
    if (size == 0) return -E2BIG;
    size_t length = ::strnlen(from, size);
    bool fits = length < size;
    size_t copied = fits ? length : size - 1;
    std::memcpy(into, from, copied);
    into[copied] = 0;
    return fits ? static_cast<ssize_t>(copied) : -E2BIG;
}
char *skip_spaces(const char *text) { return const_cast<char *>(text + std::strspn(text, " \t\n\v\f\r")); }
char *strim(char *text) {
    size_t length = std::strlen(text);
    while (length > 0 && std::strchr(" \t\n\v\f\r", text[length - 1])) text[--length] = 0;
    return skip_spaces(text);
}

ktime_t ktime_get() { return static_cast<ktime_t>(handler_clock_ns()); }
ktime_t ktime_get_real() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return ktime_set(now.tv_sec, static_cast<unsigned long>(now.tv_nsec));
}
ktime_t ktime_get_boottime() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return ktime_set(now.tv_sec, static_cast<unsigned long>(now.tv_nsec));
}
void do_gettimeofday(timeval *now) { ::gettimeofday(now, nullptr); }
void getnstimeofday(timespec *now) { ::clock_gettime(CLOCK_REALTIME, now); }

unsigned long copy_from_user(void *to, const void *from, unsigned long size) {
    return is_own(from, size) ? size : size - copy_guarded(to, from, size);
}
unsigned long copy_to_user(void *to, const void *from, unsigned long size) {
    return is_own(to, size) ? size : size - copy_guarded(to, from, size);
}
unsigned long clear_user(void *to, unsigned long size) {
    static const char zeros[4096] = {};
    while (size > 0) {
        unsigned long part = size < sizeof zeros ? size : sizeof zeros;
        unsigned long left = copy_to_user(to, zeros, part);
        if (left != 0) return size - part + left;
        to = static_cast<char *>(to) + part;
        size -= part;
    }
    return 0;
}
long strnlen_user(const char *text, long count) {
    if (count <= 0 || is_own(text, 1)) return 0;
    long length = length_guarded(text, static_cast<size_t>(count));
    return length < 0 ? 0 : length + 1;
}
long strncpy_from_user(char *to, const char *from, long count) {
    if (count <= 0) return 0;
    if (is_own(from, 1)) return -EFAULT;
    long length = length_guarded(from, static_cast<size_t>(count));
    if (length < 0) return -EFAULT;
    size_t copied = static_cast<size_t>(length < count ? length + 1 : count);
    return copy_guarded(to, from, copied) == copied ? length : -EFAULT;
}
long probe_kernel_read(void *to, const void *from, size_t size) {
    return copy_guarded(to, from, size) == size ? 0 : -EFAULT;
}
long probe_kernel_write(void *to, const void *from, size_t size) {
    return copy_guarded(to, from, size) == size ? 0 : -EFAULT;
}
int ktrace_access_ok(const void *at, unsigned long size) { return !is_own(at, size); }

unsigned long kallsyms_lookup_name(const char *name) {
    char copy[sizeof wire->text];
    strlcpy(copy, name, sizeof copy);
    std::memcpy(wire->text, copy, sizeof copy);
    wire->address = 0;
    ask(Request::lookup);
    return wire->address;
}
int sprint_symbol(char *into, unsigned long address) {
    return static_cast<int>(format_symbol(into, KSYM_SYMBOL_LEN, address, true));
}
}
