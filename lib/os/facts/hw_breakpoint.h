// debug_registers: whether they do anything here.
#pragma once

namespace ktrace::os {

/// False where the processor's debug registers take what is written to them and stop nothing, as in some virtual
/// machines. It is looked at once, by a child that is ptraced by the calling thread, which traces on as it did; true
/// where that child is not to be had, or the machine's watchpoints are not known (arch::HostNative::watch_registers).
bool debug_registers_trap();

} // namespace ktrace::os
