#include "os/self/allocate.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>

namespace ktrace::os {

Status allocate(const Fd &file, std::size_t offset, std::size_t size) {
    constexpr std::size_t at_once = 64 << 10; // a signal takes back what one call has allocated
    const std::size_t end = offset + size;
    while (offset < end) {
        const std::size_t part = std::min(at_once, end - offset);
        if (::fallocate(file.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(part)) == 0)
            offset += part;
        else if (errno != EINTR)
            return fail(Error::Kind::refused, std::string("there is no memory for counters: ") + std::strerror(errno));
    }
    return {};
}

} // namespace ktrace::os
