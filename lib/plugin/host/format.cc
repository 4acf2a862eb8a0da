#include "plugin/host/format.h"

#include <cctype>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <dlfcn.h>

#include "plugin/host/guard.h"
#include "plugin/host/turns.h"

#include <linux/printk.h>

namespace ktrace::plugin::host {

namespace {

/// One conversion: flags, width, precision, size of the argument, letter.
struct Conversion {
    bool left = false, plus = false, space = false, alternate = false, zero = false;
    int width = -1, precision = -1;
    enum class Size : std::uint8_t { byte, half, normal, is_long, long_long, size } size = Size::normal;
    char letter = 0;
};

/// Text with an end: counts on when it is full.
class Output {
  public:
    Output(char *into, std::size_t size) : into_(into), size_(size) {}
    void put(char c) {
        if (used_ + 1 < size_) into_[used_] = c;
        used_++;
    }
    void put(const char *text, std::size_t length) {
        for (std::size_t i = 0; i < length; i++) put(text[i]);
    }
    void pad(char c, long count) {
        for (; count > 0; count--) put(c);
    }
    int finish() {
        if (size_ > 0) into_[used_ < size_ ? used_ : size_ - 1] = 0;
        return static_cast<int>(used_);
    }

  private:
    char *into_;
    std::size_t size_, used_ = 0;
};

void put_padded(Output &out, const Conversion &c, const char *text, std::size_t length) {
    long padding = c.width - static_cast<long>(length);
    if (!c.left) out.pad(' ', padding);
    out.put(text, length);
    if (c.left) out.pad(' ', padding);
}

/// A number by the C library, with the same flags.
template <class T> void put_by_libc(Output &out, const Conversion &c, const char *size_and_letter, T value) {
    char how[40];
    std::snprintf(how, sizeof how, "%%%s%s%s%s%s*.*%s", c.left ? "-" : "", c.plus ? "+" : "", c.space ? " " : "",
                  c.alternate ? "#" : "", c.zero && !c.left ? "0" : "", size_and_letter);
    char text[512];
    int width = c.width < 0 ? 0 : c.width;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int length = std::snprintf(text, sizeof text, how, width, c.precision, value);
#pragma GCC diagnostic pop
    if (length < 0) return;
    out.put(text, static_cast<std::size_t>(length) < sizeof text ? static_cast<std::size_t>(length) : sizeof text - 1);
}

struct Arguments {
    va_list list;
};

std::int64_t signed_argument(const Conversion &c, Arguments &a) {
    switch (c.size) {
    case Conversion::Size::byte: return static_cast<signed char>(va_arg(a.list, int));
    case Conversion::Size::half: return static_cast<short>(va_arg(a.list, int));
    case Conversion::Size::normal: return va_arg(a.list, int);
    default: return va_arg(a.list, long long);
    }
}

std::uint64_t unsigned_argument(const Conversion &c, Arguments &a) {
    switch (c.size) {
    case Conversion::Size::byte: return static_cast<unsigned char>(va_arg(a.list, int));
    case Conversion::Size::half: return static_cast<unsigned short>(va_arg(a.list, int));
    case Conversion::Size::normal: return va_arg(a.list, unsigned);
    default: return va_arg(a.list, unsigned long long);
    }
}

void put_string(Output &out, const Conversion &c, const char *text) {
    constexpr std::size_t most = 4096;
    static char copy[most];
    std::size_t limit =
        c.precision >= 0 && static_cast<std::size_t>(c.precision) < most ? static_cast<std::size_t>(c.precision) : most;
    if (reinterpret_cast<std::uintptr_t>(text) < page_size) return put_padded(out, c, "(null)", 6);
    long length = length_guarded(text, limit);
    if (length < 0 || copy_guarded(copy, text, static_cast<std::size_t>(length)) != static_cast<std::size_t>(length))
        return put_padded(out, c, "(efault)", 8);
    put_padded(out, c, copy, static_cast<std::size_t>(length));
}

/// Bytes as two hex digits each, with something in between (%pM, %*ph).
void put_bytes(Output &out, const Conversion &c, const unsigned char *bytes, std::size_t count, char between) {
    unsigned char copy[64];
    char text[64 * 3 + 1];
    if (count > sizeof copy) count = sizeof copy;
    if (copy_guarded(copy, bytes, count) != count) return put_padded(out, c, "(efault)", 8);
    std::size_t used = 0;
    for (std::size_t i = 0; i < count; i++) {
        if (i != 0 && between) text[used++] = between;
        std::snprintf(text + used, 3, "%02x", copy[i]);
        used += 2;
    }
    put_padded(out, c, text, used);
}

/// %pI4 (1.2.3.4), %pi4 (001.002.003.004), %pI6 (groups of four digits), %pi6 (without colons).
const char *put_internet(Output &out, const Conversion &c, const unsigned char *bytes, const char *rest, bool plain) {
    unsigned char copy[16];
    std::size_t count = *rest == '6' ? 16 : 4;
    if (*rest != '4' && *rest != '6') return rest;
    if (copy_guarded(copy, bytes, count) != count) {
        put_padded(out, c, "(efault)", 8);
        return rest + 1;
    }
    char text[64];
    int used = 0;
    if (count == 4)
        used = std::snprintf(text, sizeof text, plain ? "%u.%u.%u.%u" : "%03u.%03u.%03u.%03u", copy[0], copy[1],
                             copy[2], copy[3]);
    else
        for (std::size_t i = 0; i < count; i++)
            used += std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used), "%s%02x",
                                  plain && i != 0 && i % 2 == 0 ? ":" : "", copy[i]);
    put_padded(out, c, text, static_cast<std::size_t>(used));
    return rest + 1;
}

void put_plain_pointer(Output &out, const Conversion &c, const void *pointer) {
    char text[24];
    int length = std::snprintf(text, sizeof text, "%0*" PRIxPTR, static_cast<int>(2 * sizeof pointer),
                               reinterpret_cast<std::uintptr_t>(pointer));
    put_padded(out, c, text, static_cast<std::size_t>(length));
}

/// The letters behind %p; returns where the format goes on.
const char *put_pointer(Output &out, const Conversion &c, const char *rest, Arguments &a) {
    void *pointer = va_arg(a.list, void *);
    auto *bytes = static_cast<const unsigned char *>(pointer);
    char text[1024];
    switch (*rest) {
    case 'S':
    case 'B':
    case 'F':
    case 's':
    case 'f': {
        bool with_offset = std::isupper(static_cast<unsigned char>(*rest)) != 0;
        std::size_t length = format_symbol(text, sizeof text, reinterpret_cast<std::uintptr_t>(pointer), with_offset);
        put_padded(out, c, text, length);
        return rest + 1;
    }
    case 'I': return put_internet(out, c, bytes, rest + 1, true);
    case 'i': return put_internet(out, c, bytes, rest + 1, false);
    case 'M': put_bytes(out, c, bytes, 6, ':'); return rest + 1;
    case 'm': put_bytes(out, c, bytes, 6, 0); return rest + 1;
    case 'h': {
        Conversion whole = c;
        whole.width = -1;
        char between = rest[1] == 'C' ? ':' : rest[1] == 'D' ? '-' : rest[1] == 'N' ? '\0' : ' ';
        put_bytes(out, whole, bytes, c.width > 0 ? static_cast<std::size_t>(c.width) : 1, between);
        return rest + (rest[1] == 'C' || rest[1] == 'D' || rest[1] == 'N' ? 2 : 1);
    }
    case 'V': {
        auto *inner = static_cast<const va_format *>(pointer);
        int length = format_text(text, sizeof text, inner->fmt, *inner->va);
        out.put(text,
                static_cast<std::size_t>(length) < sizeof text ? static_cast<std::size_t>(length) : sizeof text - 1);
        return rest + 1;
    }
    case 'x': {
        Conversion plain = c;
        plain.size = Conversion::Size::long_long;
        put_by_libc(out, plain, PRIx64, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer)));
        return rest + 1;
    }
    case 'K': put_plain_pointer(out, c, pointer); return rest + 1;
    default: put_plain_pointer(out, c, pointer); return rest;
    }
}

int read_number(const char *&at, Arguments &a) {
    if (*at == '*') {
        at++;
        return va_arg(a.list, int);
    }
    int value = 0;
    for (; *at >= '0' && *at <= '9'; at++) value = value < 100000 ? value * 10 + (*at - '0') : value;
    return value;
}

const char *read_flags(const char *at, Conversion &c) {
    for (;; at++) {
        switch (*at) {
        case '-': c.left = true; break;
        case '+': c.plus = true; break;
        case ' ': c.space = true; break;
        case '#': c.alternate = true; break;
        case '0': c.zero = true; break;
        default: return at;
        }
    }
}

const char *read_size(const char *at, Conversion &c) {
    using Size = Conversion::Size;
    switch (*at) {
    case 'h': c.size = at[1] == 'h' ? Size::byte : Size::half; return at + (at[1] == 'h' ? 2 : 1);
    case 'l': c.size = at[1] == 'l' ? Size::long_long : Size::is_long; return at + (at[1] == 'l' ? 2 : 1);
    case 'L': c.size = Size::long_long; return at + 1;
    case 'q': c.size = Size::long_long; return at + 1;
    case 'z':
    case 'Z':
    case 'j':
    case 't': c.size = Size::size; return at + 1;
    default: return at;
    }
}

/// A conversion from behind its %; returns what comes behind it.
const char *convert(Output &out, const char *at, Arguments &a) {
    Conversion c;
    at = read_flags(at, c);
    if (*at == '*' || (*at >= '0' && *at <= '9')) c.width = read_number(at, a);
    if (c.width < -1) {
        c.left = true;
        c.width = -c.width;
    }
    if (*at == '.') c.precision = read_number(++at, a);
    at = read_size(at, c);
    c.letter = *at++;
    char letters[8];
    switch (c.letter) {
    case '%': out.put('%'); return at;
    case 'c': {
        char character = static_cast<char>(va_arg(a.list, int));
        put_padded(out, c, &character, 1);
        return at;
    }
    case 's': put_string(out, c, va_arg(a.list, const char *)); return at;
    case 'p': return put_pointer(out, c, at, a);
    case 'd':
    case 'i': put_by_libc(out, c, PRId64, signed_argument(c, a)); return at;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        std::snprintf(letters, sizeof letters, "l%c", c.letter);
        put_by_libc(out, c, letters, unsigned_argument(c, a));
        return at;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        std::snprintf(letters, sizeof letters, "%c", c.letter);
        put_by_libc(out, c, letters, va_arg(a.list, double));
        return at;
    case 'n': // as the kernel: not obeyed
        va_arg(a.list, void *);
        return at;
    case 0: return at - 1;
    default:
        out.put('%');
        out.put(c.letter);
        return at;
    }
}

} // namespace

std::size_t format_symbol(char *into, std::size_t size, unsigned long address, bool with_offset) {
    char text[1024];
    text[0] = 0;
    Dl_info place{};
    if (window.contains(address)) {
        if (::dladdr(reinterpret_cast<void *>(address), &place) != 0 && place.dli_sname)
            std::snprintf(text, sizeof text, "%s+0x%lx", place.dli_sname,
                          address - reinterpret_cast<unsigned long>(place.dli_saddr));
    } else {
        wire->address = address;
        ask(Request::symbol);
        std::snprintf(text, sizeof text, "%.*s", static_cast<int>(sizeof text - 1), wire->text);
    }
    if (text[0] == 0) std::snprintf(text, sizeof text, "0x%lx", address);
    if (!with_offset) text[std::strcspn(text, "+")] = 0;
    std::snprintf(into, size, "%s", text);
    return std::strlen(into);
}

int format_text(char *into, std::size_t size, const char *format, va_list list) {
    Output out(into, size);
    Arguments arguments;
    va_copy(arguments.list, list);
    for (const char *at = format; *at != 0;) {
        if (*at != '%') {
            out.put(*at++);
            continue;
        }
        at = convert(out, at + 1, arguments);
    }
    va_end(arguments.list);
    return out.finish();
}

} // namespace ktrace::plugin::host
