#include "os/descriptors.h"

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace ktrace::os {

void hold_standard_descriptors() {
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) >= 0) continue;
        // The lowest free descriptor is this one. The wrong direction keeps it useless.
        int direction = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (::open("/dev/null", direction | O_CLOEXEC) < 0) return;
    }
}

void drop_inherited_descriptors() {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup3(null, fd, O_CLOEXEC);
    ::close(null);
    std::error_code ignored;
    std::vector<int> inherited;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
        const int fd = std::atoi(entry.path().filename().c_str());
        const int flags = ::fcntl(fd, F_GETFD);
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0) inherited.push_back(fd);
    }
    for (int fd : inherited) ::close(fd);
}

} // namespace ktrace::os
