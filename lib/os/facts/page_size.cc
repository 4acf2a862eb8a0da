#include "os/facts/page_size.h"

#include <string>

#include <unistd.h>

namespace ktrace::os {

std::uint64_t page_size() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

Status fits_pages(std::uint64_t size) {
    constexpr std::uint64_t known = 4096;
    if (size == known) return {};
    return fail(Error::Kind::refused,
                "this kernel has memory pages of " + std::to_string(size / 1024) +
                    " KiB: ktrace traces with those of 4 KiB",
                "boot a kernel with pages of 4 KiB");
}

} // namespace ktrace::os
