// The four functions that a compiler may ask for anywhere. By no string instructions: the program may have set the
// direction flag.
#include <cstddef>

extern "C" {

void *memcpy(void *to, const void *from, std::size_t size) {
    auto *into = static_cast<unsigned char *>(to);
    const auto *of = static_cast<const unsigned char *>(from);
    for (; size >= 8; size -= 8, into += 8, of += 8)
        *reinterpret_cast<unsigned long __attribute__((may_alias)) *>(into) =
            *reinterpret_cast<const unsigned long __attribute__((may_alias)) *>(of);
    for (; size != 0; size--) *into++ = *of++;
    return to;
}

void *memmove(void *to, const void *from, std::size_t size) {
    auto *into = static_cast<unsigned char *>(to);
    const auto *of = static_cast<const unsigned char *>(from);
    if (into <= of || into >= of + size) return memcpy(to, from, size);
    while (size-- != 0) into[size] = of[size];
    return to;
}

void *memset(void *to, int value, std::size_t size) {
    auto *into = static_cast<unsigned char *>(to);
    while (size-- != 0) *into++ = static_cast<unsigned char>(value);
    return to;
}

int memcmp(const void *one, const void *other, std::size_t size) {
    const auto *a = static_cast<const unsigned char *>(one);
    const auto *b = static_cast<const unsigned char *>(other);
    for (std::size_t i = 0; i < size; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}
}
