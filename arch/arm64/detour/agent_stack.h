// The stack from a stub that calls the agent on, downwards: what the stub keeps (x16 and x30, in this order), the
// return address into it, and the thread's registers.
#pragma once

#include <cstdint>

namespace ktrace::arch {

inline constexpr std::uint64_t kept_by_stub = 16;

} // namespace ktrace::arch
