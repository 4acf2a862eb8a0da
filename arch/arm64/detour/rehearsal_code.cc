#include "arm64/detour/detour.h"
#include "arm64/words.h"

namespace ktrace::arch {

namespace {

constexpr std::uint32_t code[] = {
    // call_alone
    0xa9be7bfd, // 0: stp x29, x30, [sp, #-32]!
    0xf9000bf3, // 4: str x19, [sp, #16]
    0xaa0003f3, // 8: mov x19, x0
    0x94000017, // 12: bl inner
    0xd503201f, // 16: nop
    0xf1000673, // 20: subs x19, x19, #1
    0x54ffffa1, // 24: b.ne 12
    0xf9400bf3, // 28: ldr x19, [sp, #16]
    0xa8c27bfd, // 32: ldp x29, x30, [sp], #32
    0xd65f03c0, // 36: ret
    // call_around
    0xa9be7bfd, // 40: as above
    0xf9000bf3, // 44
    0xaa0003f3, // 48
    0x94000007, // 52: bl around
    0xd503201f, // 56: nop
    0xf1000673, // 60
    0x54ffffa1, // 64: b.ne 52
    0xf9400bf3, // 68
    0xa8c27bfd, // 72
    0xd65f03c0, // 76: ret
    // around
    0xd503201f, // 80: nop
    0xa9bf7bfd, // 84: stp x29, x30, [sp, #-16]!
    0x94000004, // 88: bl inner
    0xd503201f, // 92: nop
    0xa8c17bfd, // 96: ldp x29, x30, [sp], #16
    0xd65f03c0, // 100: ret
    // inner
    0xd503201f, // 104: nop
    0xd65f03c0, // 108: ret
};

} // namespace

RehearsalCode Arm64Detour::rehearsal_code() {
    RehearsalCode all;
    for (const std::uint32_t word : code)
        for (const std::byte each : a64_bytes(word)) all.bytes.push_back(each);
    all.call_alone = 0;
    all.call_around = 40;
    all.around = 80;
    all.inner = 104;
    all.returns = {16, 56, 92};
    return all;
}

} // namespace ktrace::arch
