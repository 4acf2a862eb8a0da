// System calls as people read them: `epoll_wait(5, 0x7f5e40010000, 128, 100)`.
#pragma once

#include <string>

#include "os/proc/procfs.h"

namespace ktrace::sample {

/// `futex`; `call 1234` of a number that is not known here.
std::string syscall_name(long number);

/// The call with its arguments: descriptors and counts as numbers, pointers and flags as 0x….
std::string syscall_text(const os::TaskPlace &place);

/// Its arguments as a JSON list: numbers, pointers and flags as strings.
std::string syscall_arguments_json(const os::TaskPlace &place);

} // namespace ktrace::sample
