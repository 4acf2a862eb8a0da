// Jump buffers of glibc (sysdeps/aarch64/jmpbuf-offsets.h) and musl (src/setjmp/aarch64): x19 to x30, the stack
// pointer. glibc encrypts the last two by the same word, which is not found from the registers; but where a function
// keeps frame records, as arm64's compilers make them, its frame pointer, which is not encrypted, is its stack pointer,
// too. The other word then has to lead behind a call.
#include <array>

#include "arm64/arm64.h"

namespace ktrace::arch {

namespace {

constexpr std::int64_t frame_at = 80, link_at = 88, musl_sp_at = 96, glibc_sp_at = 104;

/// True behind a call: that of setjmp.
bool is_behind_call(std::uint64_t pc, Memory &memory) {
    std::array<std::byte, a64_size> code;
    if (pc % a64_size != 0 || pc < code.size() || pc >> 52 != 0) return false;
    const VirtAddr end{pc};
    if (memory.read(end - static_cast<std::int64_t>(code.size()), code) != code.size()) return false;
    return Arm64::call_before(code, end).has_value();
}

} // namespace

std::optional<VirtAddr> Arm64::longjmp_sp(const Registers &regs, Memory &memory) {
    const VirtAddr buffer{regs.x[0]};
    const auto link = memory.read_value<std::uint64_t>(buffer + link_at);
    const auto frame = memory.read_value<std::uint64_t>(buffer + frame_at);
    const auto musl_sp = memory.read_value<std::uint64_t>(buffer + musl_sp_at);
    const auto glibc_sp = memory.read_value<std::uint64_t>(buffer + glibc_sp_at);
    if (!link || !frame || !musl_sp || !glibc_sp) return std::nullopt;
    if (is_behind_call(*link, memory)) return VirtAddr{*musl_sp};
    if (is_behind_call(*link ^ *glibc_sp ^ *frame, memory)) return VirtAddr{*frame};
    return std::nullopt;
}

} // namespace ktrace::arch
