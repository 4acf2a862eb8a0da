// Jump buffers of glibc (sysdeps/x86_64/jmpbuf-offsets.h, pointer_guard.h) and musl (src/setjmp/x86_64): rbx, rbp, r12
// to r15, the stack pointer, the pc. glibc encrypts the last two by a word of the thread's control block.
#include <array>
#include <bit>

#include "x86_64/x86_64.h"

namespace ktrace::arch {

namespace {

constexpr std::int64_t sp_at = 48, pc_at = 56;
constexpr std::uint64_t guard_at = 0x30; // from the thread pointer
constexpr int rotated = 0x11;

/// True behind a call: that of setjmp.
bool is_behind_call(std::uint64_t pc, Memory &memory) {
    std::array<std::byte, 16> code;
    if (pc < code.size() || pc >> 47 != 0) return false;
    const VirtAddr end{pc};
    if (memory.read(end - static_cast<std::int64_t>(code.size()), code) != code.size()) return false;
    return X86_64::call_before(code, end).has_value();
}

} // namespace

std::optional<VirtAddr> X86_64::longjmp_sp(const Registers &regs, Memory &memory) {
    const VirtAddr buffer{regs.di};
    const auto sp = memory.read_value<std::uint64_t>(buffer + sp_at);
    const auto pc = memory.read_value<std::uint64_t>(buffer + pc_at);
    if (!sp || !pc) return std::nullopt;
    if (is_behind_call(*pc, memory)) return VirtAddr{*sp};
    const auto guard = memory.read_value<std::uint64_t>(VirtAddr{regs.fs_base + guard_at});
    if (!guard) return std::nullopt;
    if (is_behind_call(std::rotr(*pc, rotated) ^ *guard, memory)) return VirtAddr{std::rotr(*sp, rotated) ^ *guard};
    return std::nullopt;
}

} // namespace ktrace::arch
