#include "sample/syscall_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <sys/syscall.h>

namespace ktrace::sample {

namespace {

/// A letter an argument: d a descriptor, an id or another 32-bit number, n a count or size, l a signed 64-bit number,
/// p a pointer, x flags.
struct SystemCall {
    long number;
    std::string_view name, arguments;
};

#define CALL(name, arguments)                                                                                          \
    SystemCall { SYS_##name, #name, arguments }

// Those that can sleep: by their purpose, on a lock, on a disk, or for a page. Those that newer machines lack are at
// the end.
constexpr std::array calls{
    CALL(read, "dpn"),
    CALL(write, "dpn"),
    CALL(readv, "dpd"),
    CALL(writev, "dpd"),
    CALL(pread64, "dpnl"),
    CALL(pwrite64, "dpnl"),
    CALL(preadv, "dpdl"),
    CALL(pwritev, "dpdl"),
    CALL(preadv2, "dpdllx"),
    CALL(pwritev2, "dpdllx"),
    CALL(openat, "dpxx"),
    CALL(openat2, "dppn"),
    CALL(close, "d"),
    CALL(close_range, "ddx"),
    CALL(lseek, "dld"),
    CALL(dup, "d"),
    CALL(dup3, "ddx"),
    CALL(fcntl, "ddx"),
    CALL(flock, "dx"),
    CALL(ioctl, "dxx"),
    CALL(fsync, "d"),
    CALL(fdatasync, "d"),
    CALL(sync, ""),
    CALL(syncfs, "d"),
    CALL(sync_file_range, "dllx"),
    CALL(fallocate, "dxll"),
    CALL(ftruncate, "dl"),
    CALL(truncate, "pl"),
    CALL(fstat, "dp"),
    CALL(newfstatat, "dppx"),
    CALL(statx, "dpxxp"),
    CALL(faccessat, "dpx"),
    CALL(getdents64, "dpn"),
    CALL(mkdirat, "dpx"),
    CALL(unlinkat, "dpx"),
    CALL(renameat2, "dpdpx"),
    CALL(linkat, "dpdpx"),
    CALL(symlinkat, "pdp"),
    CALL(readlinkat, "dppn"),
    CALL(sendfile, "ddpn"),
    CALL(copy_file_range, "dpdpnx"),
    CALL(splice, "dpdpnx"),
    CALL(tee, "ddnx"),
    CALL(vmsplice, "dpnx"),
    CALL(mount, "pppxp"),
    CALL(umount2, "px"),
    CALL(mmap, "pnxxdl"),
    CALL(munmap, "pn"),
    CALL(mremap, "pnnxp"),
    CALL(mprotect, "pnx"),
    CALL(madvise, "pnd"),
    CALL(msync, "pnx"),
    CALL(mlock, "pn"),
    CALL(mlockall, "x"),
    CALL(brk, "p"),
    CALL(futex, "pxdpp"),
    CALL(nanosleep, "pp"),
    CALL(clock_nanosleep, "dxpp"),
    CALL(ppoll, "pdppn"),
    CALL(pselect6, "dppppp"),
    CALL(epoll_ctl, "dddp"),
    CALL(epoll_pwait, "dpddpn"),
    CALL(epoll_pwait2, "dpdppn"),
    CALL(socket, "dxd"),
    CALL(connect, "dpd"),
    CALL(accept, "dpp"),
    CALL(accept4, "dppx"),
    CALL(bind, "dpd"),
    CALL(sendto, "dpnxpd"),
    CALL(recvfrom, "dpnxpp"),
    CALL(sendmsg, "dpx"),
    CALL(recvmsg, "dpx"),
    CALL(sendmmsg, "dpdx"),
    CALL(recvmmsg, "dpdxp"),
    CALL(shutdown, "dd"),
    CALL(wait4, "dpxp"),
    CALL(waitid, "ddpxp"),
    CALL(clone, "xpppp"),
    CALL(clone3, "pn"),
    CALL(execve, "ppp"),
    CALL(execveat, "dpppx"),
    CALL(exit, "d"),
    CALL(exit_group, "d"),
    CALL(kill, "dd"),
    CALL(tgkill, "ddd"),
    CALL(rt_sigsuspend, "pn"),
    CALL(rt_sigtimedwait, "pppn"),
    CALL(rt_sigreturn, ""),
    CALL(restart_syscall, ""),
    CALL(sched_yield, ""),
    CALL(msgsnd, "dpnx"),
    CALL(msgrcv, "dpnlx"),
    CALL(semop, "dpn"),
    CALL(semtimedop, "dpnp"),
    CALL(mq_timedsend, "dpndp"),
    CALL(mq_timedreceive, "dpnpp"),
    CALL(io_getevents, "pllpp"),
    CALL(io_submit, "plp"),
    CALL(io_uring_enter, "dddxpn"),
    CALL(ptrace, "dddpp"),
    CALL(process_vm_readv, "dpnpnx"),
    CALL(userfaultfd, "x"),
    CALL(getrandom, "pnx"),
    CALL(membarrier, "dxd"),
    CALL(finit_module, "dpx"),
    CALL(bpf, "dpn"),
    CALL(reboot, "xxxp"),
    CALL(rt_sigprocmask, "dppn"),
    CALL(rt_sigaction, "dppn"),
    CALL(rt_sigpending, "pn"),
    CALL(rt_sigqueueinfo, "ddp"),
    CALL(sigaltstack, "pp"),
    CALL(tkill, "dd"),
    CALL(signalfd4, "dpnx"),
    CALL(getrusage, "dp"),
    CALL(times, "p"),
    CALL(uname, "p"),
    CALL(setsockopt, "dddpd"),
    CALL(getsockopt, "dddpp"),
    CALL(getsockname, "dpp"),
    CALL(getpeername, "dpp"),
    CALL(socketpair, "dddp"),
    CALL(listen, "dd"),
    CALL(pipe2, "px"),
    CALL(eventfd2, "dx"),
    CALL(epoll_create1, "x"),
    CALL(timerfd_create, "dx"),
    CALL(timerfd_settime, "dxpp"),
    CALL(timerfd_gettime, "dp"),
    CALL(inotify_init1, "x"),
    CALL(inotify_add_watch, "dpx"),
    CALL(inotify_rm_watch, "dd"),
    CALL(memfd_create, "px"),
    CALL(prctl, "dxxxx"),
    CALL(chdir, "p"),
    CALL(fchdir, "d"),
    CALL(getcwd, "pn"),
    CALL(fchmod, "dx"),
    CALL(fchmodat, "dpx"),
    CALL(fchown, "ddd"),
    CALL(fchownat, "dpddx"),
    CALL(utimensat, "dppx"),
    CALL(mknodat, "dpxx"),
    CALL(statfs, "pp"),
    CALL(fstatfs, "dp"),
    CALL(setxattr, "pppnx"),
    CALL(getxattr, "pppn"),
    CALL(fsetxattr, "dppnx"),
    CALL(fgetxattr, "dppn"),
    CALL(sched_setaffinity, "dnp"),
    CALL(sched_getaffinity, "dnp"),
    CALL(sched_setscheduler, "ddp"),
    CALL(clock_gettime, "dp"),
    CALL(setpriority, "ddd"),
    CALL(prlimit64, "ddpp"),
    CALL(unshare, "x"),
    CALL(setns, "dx"),
    CALL(chroot, "p"),
    CALL(pivot_root, "pp"),
    CALL(seccomp, "xxp"),
    CALL(mincore, "pnp"),
    CALL(mlock2, "pnx"),
    CALL(munlock, "pn"),
    CALL(shmget, "dnx"),
    CALL(shmat, "dpx"),
    CALL(shmdt, "p"),
    CALL(shmctl, "ddp"),
    CALL(semget, "ddx"),
    CALL(semctl, "dddx"),
    CALL(msgget, "dx"),
    CALL(msgctl, "ddp"),
    CALL(mq_open, "pxxp"),
    CALL(mq_unlink, "p"),
    CALL(io_setup, "dp"),
    CALL(io_destroy, "p"),
    CALL(io_cancel, "ppp"),
    CALL(io_uring_setup, "dp"),
    CALL(io_uring_register, "ddpd"),
    CALL(pidfd_open, "dx"),
    CALL(pidfd_send_signal, "ddpx"),
    CALL(pidfd_getfd, "ddx"),
    CALL(process_madvise, "dpndx"),
    CALL(perf_event_open, "pdddx"),
    CALL(timer_create, "dpp"),
    CALL(timer_settime, "dxpp"),
    CALL(timer_delete, "d"),
    CALL(setitimer, "dpp"),
    CALL(getpid, ""),
    CALL(gettid, ""),
    CALL(getppid, ""),
    CALL(set_tid_address, "p"),
    CALL(set_robust_list, "pn"),
    CALL(setpgid, "dd"),
    CALL(setsid, ""),
    CALL(fadvise64, "dlld"),
    CALL(readahead, "dln"),
    CALL(swapon, "px"),
    CALL(swapoff, "p"),
    CALL(keyctl, "dxxxx"),
    CALL(process_vm_writev, "dpnpnx"),
    CALL(name_to_handle_at, "dpppx"),
    CALL(open_by_handle_at, "dpx"),
#ifdef SYS_open
    CALL(open, "pxx"),
    CALL(creat, "px"),
    CALL(stat, "pp"),
    CALL(lstat, "pp"),
    CALL(access, "px"),
    CALL(pipe, "p"),
    CALL(select, "dpppp"),
    CALL(poll, "pdd"),
    CALL(epoll_wait, "dpdd"),
    CALL(dup2, "dd"),
    CALL(pause, ""),
    CALL(fork, ""),
    CALL(vfork, ""),
    CALL(rename, "pp"),
    CALL(mkdir, "px"),
    CALL(rmdir, "p"),
    CALL(link, "pp"),
    CALL(unlink, "p"),
    CALL(symlink, "pp"),
    CALL(readlink, "ppn"),
    CALL(chmod, "px"),
    CALL(chown, "pdd"),
    CALL(getdents, "dpn"),
    CALL(alarm, "d"),
    CALL(epoll_create, "d"),
    CALL(inotify_init, ""),
    CALL(eventfd, "d"),
    CALL(arch_prctl, "dp"),
#endif
};

#undef CALL

const SystemCall *find(long number) {
    const auto *found =
        std::find_if(calls.begin(), calls.end(), [=](const SystemCall &each) { return each.number == number; });
    return found == calls.end() ? nullptr : found;
}

/// The letters of a call; of one that is not known here, all six arguments.
std::string_view letters(const SystemCall *call) { return call ? call->arguments : "xxxxxx"; }

bool is_number(char letter) { return letter == 'd' || letter == 'n' || letter == 'l'; }

std::string number_text(char letter, std::uint64_t value) {
    if (letter == 'd') return std::to_string(static_cast<std::int32_t>(value));
    if (letter == 'l') return std::to_string(static_cast<std::int64_t>(value));
    return std::to_string(value);
}

std::string argument_text(char letter, std::uint64_t value) {
    if (is_number(letter)) return number_text(letter, value);
    return letter == 'p' && value == 0 ? "NULL" : fmt::format("{:#x}", value);
}

} // namespace

std::string syscall_name(long number) {
    const SystemCall *call = find(number);
    return call ? std::string(call->name) : "call " + std::to_string(number);
}

std::string syscall_text(const os::TaskPlace &place) {
    std::string arguments;
    std::size_t i = 0;
    for (char letter : letters(find(place.syscall))) {
        arguments += i == 0 ? "" : ", ";
        arguments += argument_text(letter, place.arguments[i++]);
    }
    return syscall_name(place.syscall) + "(" + arguments + ")";
}

std::string syscall_arguments_json(const os::TaskPlace &place) {
    std::string list;
    std::size_t i = 0;
    for (char letter : letters(find(place.syscall))) {
        const std::uint64_t value = place.arguments[i];
        list += i++ == 0 ? "" : ",";
        list += is_number(letter) ? number_text(letter, value) : fmt::format("\"{:#x}\"", value);
    }
    return "[" + list + "]";
}

} // namespace ktrace::sample
