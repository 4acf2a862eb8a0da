#include <iterator>

#include "x86_64/detour/detour.h"

namespace ktrace::arch {

namespace {

constexpr std::uint8_t code[] = {
    // call_alone
    0x53,                         // 0: push %rbx
    0x48, 0x89, 0xfb,             // 1: mov %rdi, %rbx
    0xe8, 0x47, 0x00, 0x00, 0x00, // 4: call inner
    0x0f, 0x1f, 0x44, 0x00, 0x00, // 9: nop
    0x48, 0xff, 0xcb,             // 14: dec %rbx
    0x75, 0xf1,                   // 17: jne 4
    0x5b,                         // 19: pop %rbx
    0xc3,                         // 20: ret
    // call_around
    0x53,                         // 21: push %rbx
    0x48, 0x89, 0xfb,             // 22: mov %rdi, %rbx
    0xe8, 0x0c, 0x00, 0x00, 0x00, // 25: call around
    0x0f, 0x1f, 0x44, 0x00, 0x00, // 30: nop
    0x48, 0xff, 0xcb,             // 35: dec %rbx
    0x75, 0xf1,                   // 38: jne 25
    0x5b,                         // 40: pop %rbx
    0xc3,                         // 41: ret
    // around
    0x0f, 0x1f, 0x44, 0x00, 0x00, // 42: nop
    0xe8, 0x1c, 0x00, 0x00, 0x00, // 47: call inner
    0x0f, 0x1f, 0x44, 0x00, 0x00, // 52: nop
    0xc3,                         // 57: ret
    0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
    0x90, 0x90, 0x90, // 58: nothing comes here
    // inner
    0x0f, 0x1f, 0x44, 0x00, 0x00, // 80: nop
    0xc3,                         // 85: ret
};
constexpr std::size_t inner_at = 80;
static_assert(std::size(code) == inner_at + 6);

} // namespace

RehearsalCode X86_64Detour::rehearsal_code() {
    RehearsalCode all;
    for (const std::uint8_t each : code) all.bytes.push_back(static_cast<std::byte>(each));
    all.call_alone = 0;
    all.call_around = 21;
    all.around = 42;
    all.inner = inner_at;
    all.returns = {9, 30, 52};
    return all;
}

} // namespace ktrace::arch
