#include "plugin/host/log.h"

#include <cstring>
#include <ctime>

#include "plugin/host/format.h"
#include "plugin/host/guard.h"
#include "plugin/host/turns.h"

#include <linux/kernel.h>

namespace ktrace::plugin::host {

namespace {

constexpr std::size_t longest_line = 1024;
constexpr std::uint32_t default_level = 6;

char line[longest_line];
std::size_t line_size = 0;
std::uint32_t line_level = default_level;
bool line_begun = false;

std::uint64_t now_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

void append(const void *from, std::size_t size) {
    std::memcpy(wire->log + wire->log_used, from, size);
    wire->log_used += static_cast<std::uint32_t>(padded(size));
}

void write_line() {
    LogLine entry;
    entry.time_ns = now_ns(CLOCK_REALTIME);
    entry.level = line_level;
    entry.size = static_cast<std::uint32_t>(line_size);
    if (wire->log_used + sizeof entry + padded(line_size) > sizeof wire->log) ask(Request::flush);
    append(&entry, sizeof entry);
    append(line, line_size);
    line_size = 0;
    line_begun = false;
    line_level = default_level;
}

/// `<6>` in front of a line; the text behind it.
const char *read_level(const char *text) {
    bool is_level = text[0] == '<' && text[1] != 0 && text[2] == '>' &&
                    ((text[1] >= '0' && text[1] <= '7') || text[1] == 'd' || text[1] == 'c');
    if (!is_level) return text;
    if (text[1] != 'c') {
        // A new line begins, whether the last one was ended or not.
        if (line_begun) write_line();
        if (text[1] != 'd') line_level = static_cast<std::uint32_t>(text[1] - '0');
    }
    return text + 3;
}

void print(const char *text) {
    text = read_level(text);
    for (; *text != 0; text++) {
        if (*text == '\n') {
            write_line();
            text = read_level(text + 1) - 1;
            continue;
        }
        if (line_size < sizeof line) line[line_size++] = *text;
        line_begun = true;
    }
}

} // namespace

void end_line() {
    if (line_begun) write_line();
}

} // namespace ktrace::plugin::host

using namespace ktrace::plugin;
using namespace ktrace::plugin::host;

extern "C" {

int vprintk(const char *format, va_list arguments) {
    static char text[8192];
    int length = format_text(text, sizeof text, format, arguments);
    {
        Critical section;
        print(text);
    }
    leave_if_late();
    return length;
}

int printk(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vprintk(format, arguments);
    va_end(arguments);
    return length;
}

int printk_ratelimit() {
    constexpr std::uint64_t period_ns = 5'000'000'000U;
    constexpr unsigned burst = 10;
    static std::uint64_t began = 0;
    static unsigned printed = 0;
    std::uint64_t now = now_ns(CLOCK_MONOTONIC);
    if (began == 0 || now - began >= period_ns) {
        began = now;
        printed = 0;
    }
    return printed++ < burst;
}

void dump_stack() {
    end_line();
    ask(Request::stack);
}
}
