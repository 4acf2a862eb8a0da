#include "os/self/descriptors.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"

namespace ktrace::os {

namespace {

rlimit files_before{};
bool is_raised = false;

} // namespace

void hold_standard_descriptors() {
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) >= 0) continue;
        // The lowest free descriptor is this one. The wrong direction keeps it useless.
        int direction = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (::open("/dev/null", direction | O_CLOEXEC) < 0) return;
    }
}

Status allow_many_descriptors() {
    constexpr rlim_t needed = 32; // besides those that it was started with
    if (::getrlimit(RLIMIT_NOFILE, &files_before) != 0) return {};
    const rlimit all{files_before.rlim_max, files_before.rlim_max};
    is_raised = ::setrlimit(RLIMIT_NOFILE, &all) == 0;
    const rlim_t allowed = is_raised ? all.rlim_cur : files_before.rlim_cur;
    const Fd first(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    const rlim_t all_needed = needed + (first ? static_cast<rlim_t>(first.get()) : allowed);
    if (all_needed <= allowed || (!first && errno != EMFILE)) return {};
    return fail(Error::Kind::refused,
                "ktrace needs " + std::to_string(all_needed) + " open files, and may have " + std::to_string(allowed),
                "ulimit -n raises the limit");
}

void restore_descriptor_limit() {
    if (is_raised) ::setrlimit(RLIMIT_NOFILE, &files_before);
}

} // namespace ktrace::os
