// The frame of a signal on an arm64 stack.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ktrace::arch {

/// struct rt_sigframe as the kernel has it (arch/arm64/kernel/signal.c, asm/ucontext.h, asm/sigcontext.h), with one
/// record behind the registers, and the record that ends them.
struct KernelFrame {
    std::byte info[128];
    std::uint64_t flags, link, stack_sp, stack_flags, stack_size;
    std::uint64_t mask;
    std::byte room_for_masks[120];
    std::uint64_t padding;
    std::uint64_t fault_address, x[31], sp, pc, pstate;
    std::uint64_t more_padding;
    struct {
        std::uint32_t magic, size, fpsr, fpcr;
        std::uint8_t v[32][16];
    } floating;
    std::uint32_t end_magic, end_size;
    std::byte rest[4096 - 528 - 8];
};
inline constexpr std::size_t context_at = 128 + 176; // struct sigcontext, in the frame
static_assert(offsetof(KernelFrame, fault_address) == context_at && offsetof(KernelFrame, sp) == context_at + 256 &&
              offsetof(KernelFrame, floating) == context_at + 288 && sizeof(KernelFrame) == context_at + 288 + 4096);

} // namespace ktrace::arch
