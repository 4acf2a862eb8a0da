#include "os/descriptors.h"

#include <initializer_list>

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

} // namespace ktrace::os
