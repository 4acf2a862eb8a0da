#include "in_process.h"

namespace ktrace::arch {

std::uint64_t own_thread_pointer() {
    std::uint64_t pointer = 0;
    asm volatile("mrs %0, tpidr_el0" : "=r"(pointer));
    return pointer;
}

std::uint64_t processor_time() {
    std::uint64_t time = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(time));
    return time;
}

CallPlace place_of_begun(const Host::Registers &registers) { return {registers.sp, registers.x[30]}; }

/// The stack does not show that the call was made here.
CallPlace place_of_returned(const Host::Registers &registers) { return {registers.sp, registers.pc}; }

} // namespace ktrace::arch
