#include "x86_64/native.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include <cpuid.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

// recovery_handler.c; the linker makes the names of the section's ends.
extern "C" {
extern const std::byte __start_ktrace_recovery[], __stop_ktrace_recovery[];
extern const std::byte ktrace_recovery_handler[], ktrace_recovery_restorer[];
}

namespace ktrace::arch {

static_assert(sizeof(X86_64Registers) == sizeof(user_regs_struct));
static_assert(offsetof(X86_64Registers, orig_ax) == offsetof(user_regs_struct, orig_rax));
static_assert(offsetof(X86_64Registers, ip) == offsetof(user_regs_struct, rip));
static_assert(offsetof(X86_64Registers, sp) == offsetof(user_regs_struct, rsp));
static_assert(offsetof(X86_64Registers, fs_base) == offsetof(user_regs_struct, fs_base));
static_assert(offsetof(X86_64Registers, gs) == offsetof(user_regs_struct, gs));
static_assert(sizeof(X86_64FpRegisters) == sizeof(user_fpregs_struct));
static_assert(offsetof(X86_64FpRegisters, st) == offsetof(user_fpregs_struct, st_space));
static_assert(offsetof(X86_64FpRegisters, xmm) == offsetof(user_fpregs_struct, xmm_space));

namespace {

/// The request as the kernel has it: the word goes to an address (ptrace(2), C library/kernel differences).
std::optional<std::uint64_t> peek_user(Tid tid, std::size_t offset) {
    std::uint64_t value = 0;
    if (::syscall(SYS_ptrace, PTRACE_PEEKUSER, tid.value, offset, &value) != 0) return std::nullopt;
    return value;
}

std::string content(const char *path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

bool X86_64Native::read_registers(Tid tid, X86_64Registers &into) {
    return ::ptrace(PTRACE_GETREGS, tid.value, nullptr, &into) == 0;
}

bool X86_64Native::write_registers(Tid tid, const X86_64Registers &from) {
    return ::ptrace(PTRACE_SETREGS, tid.value, nullptr, &from) == 0;
}

bool X86_64Native::read_floating(Tid tid, X86_64FpRegisters &into) {
    return ::ptrace(PTRACE_GETFPREGS, tid.value, nullptr, &into) == 0;
}

bool X86_64Native::write_floating(Tid tid, const X86_64FpRegisters &from) {
    return ::ptrace(PTRACE_SETFPREGS, tid.value, nullptr, &from) == 0;
}

namespace {

/// A component of the registers' state as ptrace gives it (Intel SDM vol. 1, 13.4, the standard form).
struct StateComponent {
    unsigned number;
    std::size_t width, at; // bytes of each register; where they are among those of X86_64UpperRegisters
};
constexpr StateComponent components[] = {{2, 16, 0}, {6, 32, 16}}; // AVX; the upper halves of zmm0-15
constexpr std::size_t state_header = 512, state_size = 4096;       // those lie within so much

bool copy_component(const StateComponent &component, std::span<const std::byte> state, X86_64UpperRegisters &into) {
    std::uint64_t used = 0; // XSTATE_BV: those that are not as at the start
    std::memcpy(&used, state.data() + state_header, sizeof used);
    if ((used >> component.number & 1) == 0) return true;
    unsigned length = 0, offset = 0, c = 0, d = 0;
    if (!__get_cpuid_count(0xd, component.number, &length, &offset, &c, &d)) return false;
    if (std::size_t{offset} + std::size(into.zmm) * component.width > state.size()) return false;
    for (std::size_t i = 0; i < std::size(into.zmm); ++i)
        std::memcpy(into.zmm[i] + component.at, state.data() + offset + i * component.width, component.width);
    return true;
}

} // namespace

bool X86_64Native::read_upper(Tid tid, X86_64UpperRegisters &into) {
    std::byte state[state_size];
    iovec area{state, sizeof state};
    if (::ptrace(PTRACE_GETREGSET, tid.value, NT_X86_XSTATE, &area) != 0) return false;
    if (area.iov_len < state_header + sizeof(std::uint64_t)) return false;
    into = {};
    return std::all_of(std::begin(components), std::end(components), [&](const StateComponent &component) {
        return copy_component(component, {state, area.iov_len}, into);
    });
}

std::optional<VirtAddr> X86_64Native::read_pc(Tid tid) {
    auto value = peek_user(tid, offsetof(user, regs.rip));
    if (!value) return std::nullopt;
    return VirtAddr{*value};
}

bool X86_64Native::write_pc(Tid tid, VirtAddr pc) {
    return ::ptrace(PTRACE_POKEUSER, tid.value, offsetof(user, regs.rip), pc.value) == 0;
}

std::optional<VirtAddr> X86_64Native::read_sp(Tid tid) {
    auto value = peek_user(tid, offsetof(user, regs.rsp));
    if (!value) return std::nullopt;
    return VirtAddr{*value};
}

bool X86_64Native::has_steady_counter() {
    const std::string flags = content("/proc/cpuinfo");
    const std::string sources = content("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    return flags.find(" constant_tsc") != std::string::npos && flags.find(" nonstop_tsc") != std::string::npos &&
           sources.find("tsc") != std::string::npos; // not where it was found to be unstable
}

RecoveryCode X86_64Native::recovery_code() {
    return {{__start_ktrace_recovery, __stop_ktrace_recovery},
            static_cast<std::size_t>(ktrace_recovery_handler - __start_ktrace_recovery),
            static_cast<std::size_t>(ktrace_recovery_restorer - __start_ktrace_recovery)};
}

namespace {

bool poke_debug(Tid tid, std::size_t number, std::uint64_t value) {
    return ::ptrace(PTRACE_POKEUSER, tid.value, offsetof(user, u_debugreg) + number * sizeof(value), value) == 0;
}

/// Intel SDM vol. 3, 17.2.4: R/Wn and LENn of DR7.
std::uint64_t control_bits(const WatchRegister &watch) {
    const std::uint64_t when = watch.when == WatchRegister::When::write    ? 1
                               : watch.when == WatchRegister::When::access ? 3
                                                                           : 0;
    const std::uint64_t length = watch.length == 1 ? 0 : watch.length == 2 ? 1 : watch.length == 4 ? 3 : 2;
    return watch.when == WatchRegister::When::execute ? 0 : when | length << 2;
}

} // namespace

bool X86_64Native::set_watches(Tid tid, std::span<const WatchRegister> watches) {
    // Bits of earlier hits, of others' registers too, stay in DR6 until they are cleared.
    if (!poke_debug(tid, 7, 0) || !poke_debug(tid, 6, 0)) return false;
    std::uint64_t control = 0;
    for (std::size_t i = 0; i < watches.size() && i < watch_registers; ++i) {
        if (!poke_debug(tid, i, watches[i].at.value)) return false;
        control |= std::uint64_t{1} << (2 * i); // Ln
        control |= control_bits(watches[i]) << (16 + 4 * i);
    }
    return poke_debug(tid, 7, control);
}

unsigned X86_64Native::watch_hits(Tid tid) {
    constexpr std::uint64_t fired = 0xf;
    const auto status = peek_user(tid, offsetof(user, u_debugreg) + 6 * sizeof(std::uint64_t));
    return status ? static_cast<unsigned>(*status & fired) : 0;
}

void X86_64Native::clear_watch_hits(Tid tid) { poke_debug(tid, 6, 0); }

} // namespace ktrace::arch
