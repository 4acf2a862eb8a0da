// The names that integers of the C library stand for, with the values that the host's headers give them.
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "prototypes/table.h"

namespace ktrace::prototypes {

namespace {

using value::Enumerator;
using value::Type;

/// Single bits, or values that exclude each other. `field`: the values of the bits in `mask`, which are a number among
/// the others' single bits.
struct Names {
    std::string_view type;
    std::vector<Enumerator> names;
    std::uint32_t mask = 0;
    std::vector<Enumerator> field = {};
};

#define NAME(name)                                                                                                     \
    { #name, name }

const std::vector<Names> &all_names() {
    static const std::vector<Names> all = {
        {"open_flags",
         {NAME(O_CREAT), NAME(O_EXCL), NAME(O_NOCTTY), NAME(O_TRUNC), NAME(O_APPEND), NAME(O_NONBLOCK), NAME(O_DSYNC),
          NAME(O_ASYNC), NAME(O_DIRECT), NAME(O_DIRECTORY), NAME(O_NOFOLLOW), NAME(O_NOATIME), NAME(O_CLOEXEC),
          NAME(O_PATH)},
         O_ACCMODE,
         {NAME(O_RDONLY), NAME(O_WRONLY), NAME(O_RDWR)}},
        {"descriptor_flags", {NAME(O_NONBLOCK), NAME(O_CLOEXEC), NAME(O_DIRECT)}},
        {"directory", {NAME(AT_FDCWD)}},
        {"at_flags", {NAME(AT_SYMLINK_NOFOLLOW), NAME(AT_SYMLINK_FOLLOW), NAME(AT_NO_AUTOMOUNT), NAME(AT_EMPTY_PATH)}},
        {"access_flags", {NAME(AT_SYMLINK_NOFOLLOW), NAME(AT_EACCESS), NAME(AT_EMPTY_PATH)}},
        {"unlink_flags", {NAME(AT_REMOVEDIR)}},
        {"access_mode", {NAME(F_OK), NAME(X_OK), NAME(W_OK), NAME(R_OK)}},
        {"whence", {NAME(SEEK_SET), NAME(SEEK_CUR), NAME(SEEK_END), NAME(SEEK_DATA), NAME(SEEK_HOLE)}},
        {"fcntl_command",
         {NAME(F_DUPFD), NAME(F_GETFD), NAME(F_SETFD), NAME(F_GETFL), NAME(F_SETFL), NAME(F_GETLK), NAME(F_SETLK),
          NAME(F_SETLKW), NAME(F_SETOWN), NAME(F_GETOWN), NAME(F_OFD_GETLK), NAME(F_OFD_SETLK), NAME(F_OFD_SETLKW),
          NAME(F_DUPFD_CLOEXEC), NAME(F_SETPIPE_SZ), NAME(F_GETPIPE_SZ), NAME(F_ADD_SEALS), NAME(F_GET_SEALS)}},
        {"flock_operation", {NAME(LOCK_SH), NAME(LOCK_EX), NAME(LOCK_UN), NAME(LOCK_NB)}},
        {"lockf_command", {NAME(F_ULOCK), NAME(F_LOCK), NAME(F_TLOCK), NAME(F_TEST)}},
        {"fallocate_mode",
         {NAME(FALLOC_FL_KEEP_SIZE), NAME(FALLOC_FL_PUNCH_HOLE), NAME(FALLOC_FL_COLLAPSE_RANGE),
          NAME(FALLOC_FL_ZERO_RANGE), NAME(FALLOC_FL_INSERT_RANGE)}},
        {"file_advice",
         {NAME(POSIX_FADV_NORMAL), NAME(POSIX_FADV_RANDOM), NAME(POSIX_FADV_SEQUENTIAL), NAME(POSIX_FADV_WILLNEED),
          NAME(POSIX_FADV_DONTNEED), NAME(POSIX_FADV_NOREUSE)}},
        {"splice_flags", {NAME(SPLICE_F_MOVE), NAME(SPLICE_F_NONBLOCK), NAME(SPLICE_F_MORE), NAME(SPLICE_F_GIFT)}},
        {"umount_flags", {NAME(MNT_FORCE), NAME(MNT_DETACH), NAME(MNT_EXPIRE), NAME(UMOUNT_NOFOLLOW)}},
        {"address_family",
         {NAME(AF_UNSPEC), NAME(AF_UNIX), NAME(AF_INET), NAME(AF_INET6), NAME(AF_NETLINK), NAME(AF_PACKET),
          NAME(AF_VSOCK), NAME(AF_ALG), NAME(AF_BLUETOOTH)}},
        {"socket_type",
         {NAME(SOCK_NONBLOCK), NAME(SOCK_CLOEXEC)},
         0xf,
         {NAME(SOCK_STREAM), NAME(SOCK_DGRAM), NAME(SOCK_RAW), NAME(SOCK_RDM), NAME(SOCK_SEQPACKET)}},
        {"message_flags",
         {NAME(MSG_OOB), NAME(MSG_PEEK), NAME(MSG_DONTROUTE), NAME(MSG_CTRUNC), NAME(MSG_TRUNC), NAME(MSG_DONTWAIT),
          NAME(MSG_EOR), NAME(MSG_WAITALL), NAME(MSG_CONFIRM), NAME(MSG_ERRQUEUE), NAME(MSG_NOSIGNAL), NAME(MSG_MORE),
          NAME(MSG_WAITFORONE), NAME(MSG_ZEROCOPY), NAME(MSG_FASTOPEN), NAME(MSG_CMSG_CLOEXEC)}},
        {"shutdown_how", {NAME(SHUT_RD), NAME(SHUT_WR), NAME(SHUT_RDWR)}},
        {"socket_level",
         {NAME(SOL_SOCKET), NAME(IPPROTO_IP), NAME(IPPROTO_TCP), NAME(IPPROTO_UDP), NAME(IPPROTO_IPV6)}},
        {"address_error",
         {NAME(EAI_BADFLAGS), NAME(EAI_NONAME), NAME(EAI_AGAIN), NAME(EAI_FAIL), NAME(EAI_FAMILY), NAME(EAI_SOCKTYPE),
          NAME(EAI_SERVICE), NAME(EAI_MEMORY), NAME(EAI_SYSTEM), NAME(EAI_OVERFLOW), NAME(EAI_NODATA)}},
        {"epoll_operation", {NAME(EPOLL_CTL_ADD), NAME(EPOLL_CTL_MOD), NAME(EPOLL_CTL_DEL)}},
        {"eventfd_flags", {NAME(EFD_SEMAPHORE), NAME(EFD_CLOEXEC), NAME(EFD_NONBLOCK)}},
        {"inotify_mask",
         {NAME(IN_ACCESS), NAME(IN_MODIFY), NAME(IN_ATTRIB), NAME(IN_CLOSE_WRITE), NAME(IN_CLOSE_NOWRITE),
          NAME(IN_OPEN), NAME(IN_MOVED_FROM), NAME(IN_MOVED_TO), NAME(IN_CREATE), NAME(IN_DELETE), NAME(IN_DELETE_SELF),
          NAME(IN_MOVE_SELF), NAME(IN_ONLYDIR), NAME(IN_DONT_FOLLOW), NAME(IN_EXCL_UNLINK), NAME(IN_ONESHOT)}},
        {"timer_flags", {NAME(TIMER_ABSTIME)}},
        {"clock",
         {NAME(CLOCK_REALTIME), NAME(CLOCK_MONOTONIC), NAME(CLOCK_PROCESS_CPUTIME_ID), NAME(CLOCK_THREAD_CPUTIME_ID),
          NAME(CLOCK_MONOTONIC_RAW), NAME(CLOCK_REALTIME_COARSE), NAME(CLOCK_MONOTONIC_COARSE), NAME(CLOCK_BOOTTIME),
          NAME(CLOCK_TAI)}},
        {"mmap_prot", {NAME(PROT_NONE), NAME(PROT_READ), NAME(PROT_WRITE), NAME(PROT_EXEC)}},
        {"mmap_flags",
         {NAME(MAP_FIXED), NAME(MAP_ANONYMOUS), NAME(MAP_GROWSDOWN), NAME(MAP_DENYWRITE), NAME(MAP_LOCKED),
          NAME(MAP_NORESERVE), NAME(MAP_POPULATE), NAME(MAP_NONBLOCK), NAME(MAP_STACK), NAME(MAP_HUGETLB),
          NAME(MAP_FIXED_NOREPLACE)},
         MAP_TYPE,
         {NAME(MAP_SHARED), NAME(MAP_PRIVATE), NAME(MAP_SHARED_VALIDATE)}},
        {"msync_flags", {NAME(MS_ASYNC), NAME(MS_INVALIDATE), NAME(MS_SYNC)}},
        {"mremap_flags", {NAME(MREMAP_MAYMOVE), NAME(MREMAP_FIXED), NAME(MREMAP_DONTUNMAP)}},
        {"memory_advice",
         {NAME(MADV_NORMAL), NAME(MADV_RANDOM), NAME(MADV_SEQUENTIAL), NAME(MADV_WILLNEED), NAME(MADV_DONTNEED),
          NAME(MADV_FREE), NAME(MADV_REMOVE), NAME(MADV_DONTFORK), NAME(MADV_DOFORK), NAME(MADV_MERGEABLE),
          NAME(MADV_HUGEPAGE), NAME(MADV_NOHUGEPAGE), NAME(MADV_DONTDUMP), NAME(MADV_DODUMP), NAME(MADV_WIPEONFORK),
          NAME(MADV_COLD), NAME(MADV_PAGEOUT), NAME(MADV_POPULATE_READ), NAME(MADV_POPULATE_WRITE)}},
        {"memfd_flags", {NAME(MFD_CLOEXEC), NAME(MFD_ALLOW_SEALING), NAME(MFD_HUGETLB)}},
        {"wait_options", {NAME(WNOHANG), NAME(WUNTRACED), NAME(WEXITED), NAME(WCONTINUED), NAME(WNOWAIT)}},
        {"id_kind", {NAME(P_ALL), NAME(P_PID), NAME(P_PGID)}},
        {"priority_which", {NAME(PRIO_PROCESS), NAME(PRIO_PGRP), NAME(PRIO_USER)}},
        {"rlimit_resource",
         {NAME(RLIMIT_CPU), NAME(RLIMIT_FSIZE), NAME(RLIMIT_DATA), NAME(RLIMIT_STACK), NAME(RLIMIT_CORE),
          NAME(RLIMIT_RSS), NAME(RLIMIT_NPROC), NAME(RLIMIT_NOFILE), NAME(RLIMIT_MEMLOCK), NAME(RLIMIT_AS),
          NAME(RLIMIT_NICE), NAME(RLIMIT_RTPRIO)}},
        {"rusage_who", {NAME(RUSAGE_SELF), NAME(RUSAGE_CHILDREN), NAME(RUSAGE_THREAD)}},
        {"prctl_option",
         {NAME(PR_SET_PDEATHSIG), NAME(PR_GET_DUMPABLE), NAME(PR_SET_DUMPABLE), NAME(PR_SET_NAME), NAME(PR_GET_NAME),
          NAME(PR_SET_SECCOMP), NAME(PR_CAPBSET_READ), NAME(PR_CAPBSET_DROP), NAME(PR_SET_TIMERSLACK),
          NAME(PR_SET_CHILD_SUBREAPER), NAME(PR_SET_NO_NEW_PRIVS), NAME(PR_SET_PTRACER), NAME(PR_SET_VMA)}},
        {"signal_number",
         {NAME(SIGHUP),  NAME(SIGINT),    NAME(SIGQUIT), NAME(SIGILL),  NAME(SIGTRAP),   NAME(SIGABRT), NAME(SIGBUS),
          NAME(SIGFPE),  NAME(SIGKILL),   NAME(SIGUSR1), NAME(SIGSEGV), NAME(SIGUSR2),   NAME(SIGPIPE), NAME(SIGALRM),
          NAME(SIGTERM), NAME(SIGSTKFLT), NAME(SIGCHLD), NAME(SIGCONT), NAME(SIGSTOP),   NAME(SIGTSTP), NAME(SIGTTIN),
          NAME(SIGTTOU), NAME(SIGURG),    NAME(SIGXCPU), NAME(SIGXFSZ), NAME(SIGVTALRM), NAME(SIGPROF), NAME(SIGWINCH),
          NAME(SIGIO),   NAME(SIGPWR),    NAME(SIGSYS)}},
        {"mask_how", {NAME(SIG_BLOCK), NAME(SIG_UNBLOCK), NAME(SIG_SETMASK)}},
        {"itimer_which", {NAME(ITIMER_REAL), NAME(ITIMER_VIRTUAL), NAME(ITIMER_PROF)}},
        {"random_flags", {NAME(GRND_NONBLOCK), NAME(GRND_RANDOM)}},
        {"dlopen_mode",
         {NAME(RTLD_LAZY), NAME(RTLD_NOW), NAME(RTLD_NOLOAD), NAME(RTLD_DEEPBIND), NAME(RTLD_GLOBAL),
          NAME(RTLD_NODELETE)}},
        {"locale_category",
         {NAME(LC_CTYPE), NAME(LC_NUMERIC), NAME(LC_TIME), NAME(LC_COLLATE), NAME(LC_MONETARY), NAME(LC_MESSAGES),
          NAME(LC_ALL)}},
        {"buffering", {NAME(_IOFBF), NAME(_IOLBF), NAME(_IONBF)}},
    };
    return all;
}

#undef NAME

/// An int, or bits of one.
Type &make_enumeration(value::TypeTable &table, std::string_view name, std::vector<Enumerator> names) {
    Type &type = table.make();
    type.kind = Type::Kind::enumeration;
    type.is_signed = true;
    type.size = 4;
    type.name = name;
    type.enumerators = std::move(names);
    return type;
}

std::vector<Enumerator> names_of_errors() {
    constexpr int most = 133; // EHWPOISON
    std::vector<Enumerator> names;
    for (int number = 1; number <= most; number++)
        if (const char *name = ::strerrorname_np(number)) names.push_back({name, number});
    return names;
}

} // namespace

const Type *make_names(value::TypeTable &table, std::string_view name) {
    if (name == "error") return &make_enumeration(table, name, names_of_errors());
    for (const Names &each : all_names()) {
        if (each.type != name) continue;
        Type &type = make_enumeration(table, name, each.names);
        if (each.mask == 0) return &type;
        value::Member field;
        field.type = &make_enumeration(table, name, each.field);
        field.bit_offset = static_cast<std::uint32_t>(std::countr_zero(each.mask));
        field.bit_size = static_cast<std::uint32_t>(std::popcount(each.mask));
        type.members.push_back(field);
        return &type;
    }
    return nullptr;
}

} // namespace ktrace::prototypes
