// allocate: memory behind a file of shared memory, so that no access to it fails.
#pragma once

#include <cstddef>

#include "base/fd.h"
#include "base/result.h"

namespace ktrace::os {

/// Takes memory for `size` bytes of a file from `offset` on, on ktrace's account. Errors: refused.
Status allocate(const Fd &file, std::size_t offset, std::size_t size);

} // namespace ktrace::os
