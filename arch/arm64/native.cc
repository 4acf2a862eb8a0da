#include "arm64/native.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include <elf.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "arm64/arm64.h"

// recovery_handler.c; the linker makes the names of the section's ends.
extern "C" {
extern const std::byte __start_ktrace_recovery[], __stop_ktrace_recovery[];
extern const std::byte ktrace_recovery_handler[], ktrace_recovery_restorer[];
}

namespace ktrace::arch {

static_assert(offsetof(Arm64Registers, tpidr) == sizeof(user_regs_struct));
static_assert(offsetof(Arm64Registers, x) == offsetof(user_regs_struct, regs));
static_assert(offsetof(Arm64Registers, sp) == offsetof(user_regs_struct, sp));
static_assert(offsetof(Arm64Registers, pc) == offsetof(user_regs_struct, pc));
static_assert(offsetof(Arm64Registers, pstate) == offsetof(user_regs_struct, pstate));
static_assert(sizeof(Arm64FpRegisters) == sizeof(user_fpsimd_struct));
static_assert(offsetof(Arm64FpRegisters, v) == offsetof(user_fpsimd_struct, vregs));
static_assert(offsetof(Arm64FpRegisters, fpsr) == offsetof(user_fpsimd_struct, fpsr));
static_assert(offsetof(Arm64FpRegisters, fpcr) == offsetof(user_fpsimd_struct, fpcr));

namespace {

/// False, too, where the kernel knows fewer bytes of the set than we do.
bool get_set(Tid tid, unsigned type, void *into, std::size_t size) {
    iovec whole{into, size};
    if (::ptrace(PTRACE_GETREGSET, tid.value, type, &whole) != 0) return false;
    if (whole.iov_len == size) return true;
    errno = EIO;
    return false;
}

bool put_set(Tid tid, unsigned type, const void *from, std::size_t size) {
    iovec whole{const_cast<void *>(from), size}; // the kernel reads it
    return ::ptrace(PTRACE_SETREGSET, tid.value, type, &whole) == 0;
}

} // namespace

bool Arm64Native::read_registers(Tid tid, Arm64Registers &into) {
    return get_set(tid, NT_PRSTATUS, &into, sizeof(user_regs_struct)) &&
           get_set(tid, NT_ARM_TLS, &into.tpidr, sizeof into.tpidr);
}

bool Arm64Native::write_registers(Tid tid, const Arm64Registers &from) {
    return put_set(tid, NT_PRSTATUS, &from, sizeof(user_regs_struct));
}

bool Arm64Native::read_floating(Tid tid, Arm64FpRegisters &into) {
    return get_set(tid, NT_PRFPREG, &into, sizeof into);
}

bool Arm64Native::write_floating(Tid tid, const Arm64FpRegisters &from) {
    return put_set(tid, NT_PRFPREG, &from, sizeof from);
}

std::optional<VirtAddr> Arm64Native::read_pc(Tid tid) {
    user_regs_struct regs;
    if (!get_set(tid, NT_PRSTATUS, &regs, sizeof regs)) return std::nullopt;
    return VirtAddr{regs.pc};
}

bool Arm64Native::write_pc(Tid tid, VirtAddr pc) {
    user_regs_struct regs;
    if (!get_set(tid, NT_PRSTATUS, &regs, sizeof regs)) return false;
    regs.pc = pc.value;
    return put_set(tid, NT_PRSTATUS, &regs, sizeof regs);
}

std::optional<VirtAddr> Arm64Native::read_sp(Tid tid) {
    user_regs_struct regs;
    if (!get_set(tid, NT_PRSTATUS, &regs, sizeof regs)) return std::nullopt;
    return VirtAddr{regs.sp};
}

namespace {

bool set_call(Tid tid, int number) { return put_set(tid, NT_ARM_SYSTEM_CALL, &number, sizeof number); }

} // namespace

bool Arm64Native::was_in_call(Tid tid, const Arm64Registers &registers) {
    const std::uint64_t behind = Arm64::interrupted_for_good(registers) ? a64_size : 0;
    errno = 0;
    const long word = ::ptrace(PTRACE_PEEKTEXT, tid.value, registers.pc - behind, nullptr);
    return errno == 0 && a64_form(static_cast<std::uint32_t>(word)) == A64Form::svc;
}

void Arm64Native::show_call(Tid tid, const Arm64Registers &registers) {
    // The kernel forgets that a task is in a call before it stops.
    set_call(tid, static_cast<int>(registers.x[8]));
}

void Arm64Native::hide_call(Tid tid) { set_call(tid, -1); }

RecoveryCode Arm64Native::recovery_code() {
    return {{__start_ktrace_recovery, __stop_ktrace_recovery},
            static_cast<std::size_t>(ktrace_recovery_handler - __start_ktrace_recovery),
            static_cast<std::size_t>(ktrace_recovery_restorer - __start_ktrace_recovery)};
}

bool Arm64Native::can_jump() {
    constexpr unsigned long atomics = 1 << 8; // HWCAP_ATOMICS
    return (::getauxval(AT_HWCAP) & atomics) != 0;
}

bool Arm64Native::may_have_shadow_stacks() {
    constexpr unsigned long guarded_control_stack = 1UL << 32; // HWCAP_GCS
    return (::getauxval(AT_HWCAP) & guarded_control_stack) != 0;
}

bool Arm64Native::guards_pages() {
    constexpr unsigned long bti = 1 << 17; // HWCAP2_BTI
    return (::getauxval(AT_HWCAP2) & bti) != 0;
}

namespace {

/// struct user_hwdebug_state of asm/ptrace.h.
struct DebugRegisters {
    static constexpr std::size_t most = 16;
    std::uint32_t info = 0, padding = 0; // info: how many there are, in its lowest byte
    struct {
        std::uint64_t address;
        std::uint32_t control, padding;
    } each[most] = {};
};
constexpr std::size_t header_size = offsetof(DebugRegisters, each);
constexpr std::uint64_t watched_bytes = 8; // of one, from a multiple of it on

/// Those that the processor has are filled in; 0: they cannot be read.
std::size_t read_debug(Tid tid, unsigned type, DebugRegisters &into) {
    iovec whole{&into, sizeof into};
    if (::ptrace(PTRACE_GETREGSET, tid.value, type, &whole) != 0) return 0;
    return std::min<std::size_t>(into.info & 0xff, DebugRegisters::most);
}

constexpr std::uint32_t enabled = 1, user = 2 << 1;

/// Arm ARM, DBGWCR<n>_EL1: E, PAC of user mode, LSC, BAS.
std::uint32_t watch_control(const WatchRegister &watch) {
    const std::uint32_t when = watch.when == WatchRegister::When::write ? 2 : 3;
    const std::uint32_t bytes = ((1U << watch.length) - 1) << (watch.at.value % watched_bytes);
    return enabled | user | when << 3 | (bytes & 0xff) << 5;
}

constexpr std::uint32_t break_control = enabled | user | 0xf << 5; // DBGBCR<n>_EL1

bool executes(const WatchRegister &watch) { return watch.when == WatchRegister::When::execute; }

/// Sets the registers of one kind, each at the place that it has among all.
bool set_debug(Tid tid, unsigned type, std::span<const WatchRegister> watches) {
    const bool is_for_execution = type == NT_ARM_HW_BREAK;
    DebugRegisters all;
    const std::size_t count = read_debug(tid, type, all);
    if (watches.size() > count) return false;
    for (std::size_t i = 0; i < count; i++) {
        all.each[i] = {};
        if (i >= watches.size() || executes(watches[i]) != is_for_execution) continue;
        const std::uint64_t at = watches[i].at.value;
        if (is_for_execution)
            all.each[i] = {at, break_control, 0};
        else
            all.each[i] = {at & ~(watched_bytes - 1), watch_control(watches[i]), 0};
    }
    return put_set(tid, type, &all, header_size + count * sizeof all.each[0]);
}

/// How far the address lies from the bytes that one watches.
std::uint64_t distance(std::uint64_t from, std::uint32_t control, std::uint64_t address) {
    const unsigned bytes = control >> 5 & 0xff;
    const std::uint64_t first = from + static_cast<unsigned>(std::countr_zero(bytes));
    const std::uint64_t last = from + static_cast<unsigned>(std::bit_width(bytes)) - 1;
    return address < first ? first - address : address > last ? address - last : 0;
}

} // namespace

bool Arm64Native::set_watches(Tid tid, std::span<const WatchRegister> watches) {
    return set_debug(tid, NT_ARM_HW_WATCH, watches) && set_debug(tid, NT_ARM_HW_BREAK, watches);
}

unsigned Arm64Native::watch_hits(Tid tid) {
    siginfo_t info{};
    if (::ptrace(PTRACE_GETSIGINFO, tid.value, nullptr, &info) != 0) return 0;
    if (info.si_signo != SIGTRAP || info.si_code != TRAP_HWBKPT) return 0;
    DebugRegisters all;
    const auto address = reinterpret_cast<std::uint64_t>(info.si_addr);
    unsigned hits = 0;
    std::size_t count = read_debug(tid, NT_ARM_HW_BREAK, all);
    for (std::size_t i = 0; i < count; i++)
        if ((all.each[i].control & enabled) != 0 && all.each[i].address == address) hits |= 1U << i;
    if (hits != 0) return hits;
    // The kernel reports where the access begins, which may lie before the bytes that are watched.
    count = read_debug(tid, NT_ARM_HW_WATCH, all);
    std::uint64_t nearest = ~std::uint64_t{0};
    for (std::size_t i = 0; i < count; i++) {
        if ((all.each[i].control & enabled) == 0) continue;
        const std::uint64_t far = distance(all.each[i].address, all.each[i].control, address);
        if (far > nearest) continue;
        hits = (far == nearest ? hits : 0) | 1U << i;
        nearest = far;
    }
    return hits;
}

} // namespace ktrace::arch
