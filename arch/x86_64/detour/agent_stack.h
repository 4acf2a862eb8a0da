// The stack from a stub that calls the agent on, downwards: what the stub keeps below the red zone (rax and rdx, in
// this order), the return address into it, and the thread's registers.
#pragma once

#include <cstdint>

namespace ktrace::arch {

inline constexpr std::uint64_t agent_stub_lowers_by = 144;

} // namespace ktrace::arch
