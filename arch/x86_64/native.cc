#include "x86_64/native.h"

#include <cerrno>
#include <cstddef>

#include <sys/ptrace.h>
#include <sys/user.h>

// rescue_handler.c; the linker makes the names of the section's ends.
extern "C" {
extern const std::byte __start_ktrace_rescue[], __stop_ktrace_rescue[];
extern const std::byte ktrace_rescue_handler[], ktrace_rescue_restorer[];
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

std::optional<std::uint64_t> peek_user(Tid tid, std::size_t offset) {
    errno = 0;
    long value = ::ptrace(PTRACE_PEEKUSER, tid.value, offset, nullptr);
    if (value == -1 && errno != 0) return std::nullopt;
    return static_cast<std::uint64_t>(value);
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

RescueCode X86_64Native::rescue_code() {
    return {{__start_ktrace_rescue, __stop_ktrace_rescue},
            static_cast<std::size_t>(ktrace_rescue_handler - __start_ktrace_rescue),
            static_cast<std::size_t>(ktrace_rescue_restorer - __start_ktrace_rescue)};
}

} // namespace ktrace::arch
