#include "arm64/native.h"

#include <cerrno>
#include <cstddef>

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

namespace ktrace::arch {

static_assert(sizeof(Arm64Registers) == sizeof(user_regs_struct));
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
template <class Set> bool get_set(Tid tid, unsigned type, Set &into) {
    iovec whole{&into, sizeof into};
    if (::ptrace(PTRACE_GETREGSET, tid.value, type, &whole) != 0) return false;
    if (whole.iov_len == sizeof into) return true;
    errno = EIO;
    return false;
}

template <class Set> bool put_set(Tid tid, unsigned type, const Set &from) {
    Set copy = from; // iovec has no place for const
    iovec whole{&copy, sizeof copy};
    return ::ptrace(PTRACE_SETREGSET, tid.value, type, &whole) == 0;
}

} // namespace

bool Arm64Native::read_registers(Tid tid, Arm64Registers &into) { return get_set(tid, NT_PRSTATUS, into); }

bool Arm64Native::write_registers(Tid tid, const Arm64Registers &from) { return put_set(tid, NT_PRSTATUS, from); }

bool Arm64Native::read_floating(Tid tid, Arm64FpRegisters &into) { return get_set(tid, NT_PRFPREG, into); }

bool Arm64Native::write_floating(Tid tid, const Arm64FpRegisters &from) { return put_set(tid, NT_PRFPREG, from); }

std::optional<VirtAddr> Arm64Native::read_pc(Tid tid) {
    Arm64Registers regs;
    if (!read_registers(tid, regs)) return std::nullopt;
    return VirtAddr{regs.pc};
}

bool Arm64Native::write_pc(Tid tid, VirtAddr pc) {
    Arm64Registers regs;
    if (!read_registers(tid, regs)) return false;
    regs.pc = pc.value;
    return write_registers(tid, regs);
}

std::optional<VirtAddr> Arm64Native::read_sp(Tid tid) {
    Arm64Registers regs;
    if (!read_registers(tid, regs)) return std::nullopt;
    return VirtAddr{regs.sp};
}

RecoveryCode Arm64Native::recovery_code() { return {}; }

} // namespace ktrace::arch
