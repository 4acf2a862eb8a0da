// scan: finds the instructions of one sort in a function.
#pragma once

#include <functional>
#include <vector>

#include "arch/host.h"
#include "base/addr.h"
#include "base/memory.h"

namespace ktrace::engine {

/// The addresses of the instructions in [start, end) that are wanted, in order; nothing where the bytes do not decode
/// from end to end.
std::vector<VirtAddr> instructions(Memory &memory, VirtAddr start, VirtAddr end,
                                   const std::function<bool(const arch::Host::Plan &)> &wanted);

} // namespace ktrace::engine
