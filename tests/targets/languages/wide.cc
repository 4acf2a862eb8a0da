// Texts of wide characters behind pointers: each call prints the line that ktrace has to show of it.
#include <cstdio>

struct texts {
    wchar_t array[8];
    char16_t pair[4];
    const wchar_t *pointer;
    const char32_t *other;
};

__attribute__((noinline)) const wchar_t *wide(const wchar_t *w, const char16_t *s, const char32_t *l) {
    asm volatile("" : : "r"(w), "r"(s), "r"(l) : "memory");
    return w + 1;
}
__attribute__((noinline)) void held(texts t, wchar_t c) { asm volatile("" : : "r"(&t), "r"(c) : "memory"); }

int main() {
    wide(L"h\u00e4llo", u"utf\U0001f600", U"x\U0001f600\ny");
    std::puts("wide(w=\"h\u00e4llo\", s=\"utf\U0001f600\", l=\"x\U0001f600\\ny\") returned \"\u00e4llo\"");
    const char16_t no_pair[] = {0xd800, 'x', 0};
    const char32_t too_large[] = {'a', 0x110000, 0};
    wide(L"\"", no_pair, too_large);
    std::puts("wide(w=\"\\\"\", s=[55296, 120, 0], l=[97, 1114112, 0]) returned \"\"");
    wide(L"0123456789012345678901234567890123456789012345678901234567890123", nullptr, reinterpret_cast<char32_t *>(8));
    std::puts("wide(w=\"0123456789012345678901234567890123456789012345678901234567890123\", s=0x0, l=<fault 0x8>) "
              "returned \"123456789012345678901234567890123456789012345678901234567890123\"");
    wide(L"-0123456789012345678901234567890123456789012345678901234567890123", u"", U"");
    std::puts("wide(w=\"-012345678901234567890123456789012345678901234567890123456789012\"..., s=\"\", l=\"\") "
              "returned \"0123456789012345678901234567890123456789012345678901234567890123\"");
    held({L"wide\n", u"b\u00e9", L"ptr", nullptr}, L'\u00e9');
    std::puts("held(t={.array=\"wide\\n\", .pair=\"b\u00e9\", .pointer=\"ptr\", .other=0x0}, c='\u00e9') returned");
}
