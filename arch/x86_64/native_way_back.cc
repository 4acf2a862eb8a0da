#include "way_back.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <cpuid.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

// recovery_handler.c; the linker makes the name of the section's start.
extern "C" {
extern const std::byte __start_ktrace_recovery[], ktrace_recovery_syscall[];
}

namespace ktrace::arch {

namespace {

/// struct ucontext as the kernel has it (asm/ucontext.h, asm/sigcontext.h); libc's is another one.
struct Context {
    std::uint64_t flags, link, stack_sp, stack_flags, stack_size;
    std::uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
    std::uint16_t cs, gs, fs, ss;
    std::uint64_t error, trap_number, old_mask, cr2, floating, reserved[8];
    std::uint64_t mask;
};
static_assert(sizeof(Context) == 304 && offsetof(Context, mask) == 296);

constexpr std::uint64_t has_xstate = 1, has_ss = 2, strict_ss = 4; // UC_*
constexpr std::uint64_t no_stack = 0xff; // no mode of sigaltstack's: the task's own stays as it is
constexpr int shadow_stack_set = 0x204;  // NT_X86_SHSTK

/// Intel SDM vol. 1, 13.4: the standard form, as ptrace gives it and as signal frames hold it.
constexpr std::size_t xsave_legacy = 512, xsave_header = 64, software_bytes = 464;
constexpr std::uint64_t legacy_features = 3; // x87 and SSE

/// The software bytes (struct _fpx_sw_bytes) that the kernel looks for, to take more than x87 and SSE from a frame.
struct SoftwareBytes {
    std::uint32_t magic, extended_size;
    std::uint64_t features;
    std::uint32_t size, padding[7];
};
static_assert(sizeof(SoftwareBytes) == xsave_legacy - software_bytes);
constexpr std::uint32_t magic_start = 0x46505853, magic_end = 0x46505845;

/// Bytes up to the end of the last of the features.
std::size_t size_with(std::uint64_t features) {
    std::size_t size = xsave_legacy + xsave_header;
    for (unsigned i = 2; i < 63; i++) {
        unsigned length = 0, offset = 0, c = 0, d = 0;
        if ((features >> i & 1) != 0 && __get_cpuid_count(0xd, i, &length, &offset, &c, &d))
            size = std::max<std::size_t>(size, std::size_t{offset} + length);
    }
    return size;
}

/// All floating-point and vector registers, as a frame holds them; empty: they cannot be read.
std::vector<std::byte> floating_frame(Tid tid) {
    std::vector<std::byte> state(65536);
    iovec area{state.data(), state.size()};
    if (::ptrace(PTRACE_GETREGSET, tid.value, NT_X86_XSTATE, &area) != 0) return {};
    std::uint64_t features = 0; // XSTATE_BV: those that are not as at the start; the kernel starts the others anew
    if (area.iov_len < xsave_legacy + xsave_header) return {};
    std::memcpy(&features, state.data() + xsave_legacy, sizeof features);
    const std::size_t size = size_with(features);
    if (size > area.iov_len) return {};
    state.resize(size + sizeof magic_end);
    SoftwareBytes software{};
    software.magic = magic_start;
    software.extended_size = static_cast<std::uint32_t>(state.size());
    software.features = features | legacy_features;
    software.size = static_cast<std::uint32_t>(size);
    std::memcpy(state.data() + software_bytes, &software, sizeof software);
    std::memcpy(state.data() + size, &magic_end, sizeof magic_end);
    return state;
}

/// A shadow stack would have to hold a token for it.
bool has_shadow_stack(Tid tid) {
    std::uint64_t pointer = 0;
    iovec area{&pointer, sizeof pointer};
    return ::ptrace(PTRACE_GETREGSET, tid.value, shadow_stack_set, &area) == 0;
}

} // namespace

std::vector<std::byte> signal_frame(Tid tid, const Host::Registers &before, std::uint64_t mask, VirtAddr at) {
    constexpr std::size_t floating_at = (sizeof(Context) + 63) & ~std::size_t{63}; // XRSTOR's alignment
    if (has_shadow_stack(tid)) return {};
    const std::vector<std::byte> floating = floating_frame(tid);
    if (floating.empty()) return {};
    Context context{};
    context.flags = has_xstate | has_ss | strict_ss;
    context.stack_flags = no_stack;
    context.r8 = before.r8;
    context.r9 = before.r9;
    context.r10 = before.r10;
    context.r11 = before.r11;
    context.r12 = before.r12;
    context.r13 = before.r13;
    context.r14 = before.r14;
    context.r15 = before.r15;
    context.di = before.di;
    context.si = before.si;
    context.bp = before.bp;
    context.bx = before.bx;
    context.dx = before.dx;
    context.ax = before.ax;
    context.cx = before.cx;
    context.sp = before.sp;
    context.ip = before.ip;
    context.eflags = before.flags;
    context.cs = static_cast<std::uint16_t>(before.cs);
    context.gs = static_cast<std::uint16_t>(before.gs);
    context.fs = static_cast<std::uint16_t>(before.fs);
    context.ss = static_cast<std::uint16_t>(before.ss);
    context.floating = at.value + floating_at;
    context.mask = mask;
    std::vector<std::byte> frame(floating_at + floating.size());
    std::memcpy(frame.data(), &context, sizeof context);
    std::copy(floating.begin(), floating.end(), frame.begin() + floating_at);
    return frame;
}

std::optional<std::size_t> call_in_recovery_code() {
    return static_cast<std::size_t>(ktrace_recovery_syscall - __start_ktrace_recovery);
}

std::span<const std::byte> call_and_return() {
    static constexpr std::byte bytes[] = {std::byte{0x0f}, std::byte{0x05}, std::byte{0xc3}}; // syscall; ret
    return bytes;
}

/// It points to itself (psABI, TLS variant II).
bool is_thread_block(VirtAddr thread_pointer, Memory &memory) {
    return memory.read_value<std::uint64_t>(thread_pointer) == thread_pointer.value;
}

std::vector<SignalFrame> signal_frames(VirtAddr sp, VirtAddr end, Memory &memory) {
    constexpr std::uint16_t user_cs = 0x33, user_ss = 0x2b; // asm/segment.h
    constexpr std::uint64_t always_one = 2;                 // of the flags; their upper half is zero
    constexpr std::uint64_t alignment = 16;                 // of the context, psABI 3.2.2
    constexpr std::uint64_t at_once = 65536;
    std::vector<SignalFrame> frames;
    std::vector<std::byte> bytes(at_once + sizeof(Context));
    for (std::uint64_t from = (sp.value + alignment - 1) & ~(alignment - 1); from < end.value; from += at_once) {
        const std::size_t got = memory.read(VirtAddr{from}, bytes);
        for (std::size_t at = 0; at < at_once && at + sizeof(Context) <= got; at += alignment) {
            Context context;
            std::memcpy(&context, bytes.data() + at, sizeof context);
            const bool is_frame = context.cs == user_cs && context.ss == user_ss &&
                                  (context.eflags & always_one) != 0 && context.eflags >> 32 == 0;
            if (is_frame && from + at < end.value)
                frames.push_back({VirtAddr{from + at + offsetof(Context, ip)},
                                  VirtAddr{from + at + offsetof(Context, sp)},
                                  {VirtAddr{context.ip}, VirtAddr{context.sp}}});
        }
    }
    return frames;
}

std::optional<SignalReturn> signal_return(const Host::Registers &registers, Memory &memory) {
    const auto context = memory.read_value<Context>(Host::sp(registers)); // the return address above it is gone
    if (!context) return std::nullopt;
    return SignalReturn{VirtAddr{context->ip}, VirtAddr{context->sp}};
}

void lead_to_frame(Host::Registers &registers, VirtAddr start, VirtAddr) { registers.sp = start.value; }

bool awaits_restart(const Host::Registers &registers) {
    const auto result = static_cast<std::int64_t>(registers.ax); // ERESTARTSYS, _NOINTR, _NOHAND, _RESTARTBLOCK
    return static_cast<std::int64_t>(registers.orig_ax) >= 0 && ((-514 <= result && result <= -512) || result == -516);
}

bool X86_64Native::was_in_call(Tid, const X86_64Registers &registers) {
    return awaits_restart(registers) || X86_64::interrupted_for_good(registers);
}

} // namespace ktrace::arch
