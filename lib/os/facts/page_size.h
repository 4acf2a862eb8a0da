// page_size: the pages of memory that ktrace knows. Kernels for arm64 are built for pages of 4, 16 or 64 KiB.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace ktrace::os {

/// The pages of this kernel, in bytes.
std::uint64_t page_size();

/// Errors: refused where pages are of another size than 4096 bytes. Pure.
Status fits_pages(std::uint64_t size);

} // namespace ktrace::os
