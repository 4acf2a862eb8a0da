#include "way_back.h"

#include <array>
#include <cstddef>
#include <cstring>

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "arm64/signal_frame.h"

// recovery_handler.c; the linker makes the name of the section's start.
extern "C" {
extern const std::byte __start_ktrace_recovery[], ktrace_recovery_syscall[];
}

namespace ktrace::arch {

namespace {

constexpr std::uint32_t floating_magic = 0x46508001; // FPSIMD_MAGIC
constexpr std::uint64_t no_stack = 0xff;             // no mode of sigaltstack's: the task's own stays as it is

/// The task has registers that are longer than those that the frame holds.
bool uses_long_vectors(Tid tid) {
    constexpr std::uint16_t is_in_use = 1; // SVE_PT_REGS_SVE
    constexpr int streaming = 0x40b;       // NT_ARM_SSVE
    struct {
        std::uint32_t size, max_size;
        std::uint16_t length, max_length, flags, reserved;
    } header{};
    for (const int set : {NT_ARM_SVE, streaming}) {
        iovec area{&header, sizeof header};
        if (::ptrace(PTRACE_GETREGSET, tid.value, set, &area) == 0 && (header.flags & is_in_use) != 0) return true;
    }
    return false;
}

constexpr std::uint64_t state_mask = 0xffffffff00000000; // none of pstate's bits are there; nor is the mode user mode's
constexpr std::uint64_t mode_mask = 0xf;

} // namespace

std::vector<std::byte> signal_frame(Tid tid, const Host::Registers &before, std::uint64_t mask, VirtAddr) {
    Host::FpRegisters floating;
    if (uses_long_vectors(tid) || !HostNative::read_floating(tid, floating)) return {};
    KernelFrame frame{};
    frame.stack_flags = no_stack;
    frame.mask = mask;
    std::memcpy(frame.x, before.x, sizeof frame.x);
    frame.sp = before.sp;
    frame.pc = before.pc;
    frame.pstate = before.pstate;
    frame.floating = {floating_magic, sizeof frame.floating, floating.fpsr, floating.fpcr, {}};
    std::memcpy(frame.floating.v, floating.v, sizeof frame.floating.v);
    const auto bytes = std::as_bytes(std::span(&frame, 1));
    return {bytes.begin(), bytes.end()};
}

std::optional<std::size_t> call_in_recovery_code() {
    return static_cast<std::size_t>(ktrace_recovery_syscall - __start_ktrace_recovery);
}

std::span<const std::byte> call_and_return() {
    static constexpr std::byte bytes[] = {std::byte{0x01}, std::byte{0x00}, std::byte{0x00}, std::byte{0xd4},
                                          std::byte{0xc0}, std::byte{0x03}, std::byte{0x5f}, std::byte{0xd6}};
    return bytes; // svc #0; ret
}

/// It begins with the address of the thread's vector of TLS blocks (TLS variant I).
bool is_thread_block(VirtAddr thread_pointer, Memory &memory) {
    const auto vector = memory.read_value<std::uint64_t>(thread_pointer);
    return vector && *vector % sizeof(void *) == 0 && memory.read_value<std::uint64_t>(VirtAddr{*vector});
}

std::vector<SignalFrame> signal_frames(VirtAddr sp, VirtAddr end, Memory &memory) {
    constexpr std::uint64_t alignment = 16; // of the stack
    constexpr std::uint64_t at_once = 65536;
    constexpr std::size_t looked_at = offsetof(KernelFrame, end_magic);
    std::vector<SignalFrame> frames;
    std::vector<std::byte> bytes(at_once + looked_at);
    for (std::uint64_t from = (sp.value + alignment - 1) & ~(alignment - 1); from < end.value; from += at_once) {
        const std::size_t got = memory.read(VirtAddr{from}, bytes);
        for (std::size_t at = 0; at < at_once && at + looked_at <= got && from + at < end.value; at += alignment) {
            std::array<std::uint64_t, 3> where; // sp, pc, pstate
            std::array<std::uint32_t, 2> record;
            std::memcpy(&where, bytes.data() + at + offsetof(KernelFrame, sp), sizeof where);
            std::memcpy(&record, bytes.data() + at + offsetof(KernelFrame, floating), sizeof record);
            if (record[0] != floating_magic || record[1] != sizeof(KernelFrame::floating) ||
                (where[2] & (state_mask | mode_mask)) != 0)
                continue;
            frames.push_back({VirtAddr{from + at + offsetof(KernelFrame, pc)},
                              VirtAddr{from + at + offsetof(KernelFrame, sp)},
                              {VirtAddr{where[1]}, VirtAddr{where[0]}}});
        }
    }
    return frames;
}

std::optional<SignalReturn> signal_return(const Host::Registers &registers, Memory &memory) {
    const auto where = memory.read_value<std::array<std::uint64_t, 2>>(
        Host::sp(registers) + static_cast<std::int64_t>(offsetof(KernelFrame, sp)));
    if (!where) return std::nullopt;
    return SignalReturn{VirtAddr{(*where)[1]}, VirtAddr{(*where)[0]}};
}

void lead_to_frame(Host::Registers &registers, VirtAddr start, VirtAddr returns_to) {
    registers.sp = start.value + before_signal_frame;
    registers.x[30] = returns_to.value;
}

/// So at the exit stop of a system call; at another stop the kernel has moved the pc already, and restarts it itself.
bool awaits_restart(const Host::Registers &registers) {
    const auto result = static_cast<std::int64_t>(registers.x[0]); // ERESTARTSYS, _NOINTR, _NOHAND, _RESTARTBLOCK
    return (-514 <= result && result <= -512) || result == -516;
}

} // namespace ktrace::arch
