// Injected call: a system call that a task makes for ktrace, with a way back by the recovery page, or else by its
// stack. The task finds back by itself if ktrace dies meanwhile.
#pragma once

#include "os/tracee/way_back.h"
#include "recovery/page.h"

namespace ktrace::recovery {

/// Where the code is in the page (HostNative::recovery_code).
inline constexpr std::size_t code_at = (sizeof(ktrace_recovery_header) + 63) & ~std::size_t{63};

/// remote_syscall with the best way back that there is; `page` may not be mapped. `through`: where there is none.
Result<std::int64_t> call_with_way_back(os::Waiter &waiter, os::Stopped &stopped, VirtAddr instruction,
                                        const Page &page, target::AddressSpace &space, std::uint64_t number,
                                        std::initializer_list<std::uint64_t> arguments,
                                        os::Through through = os::Through::steps);

} // namespace ktrace::recovery
