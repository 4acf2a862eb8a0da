// The agent's build has this file, too.
#include "in_process.h"

namespace ktrace::arch {

/// fs:0 points to itself (psABI, thread-local storage), and takes less time than rdfsbase.
std::uint64_t own_thread_pointer() {
    std::uint64_t pointer = 0;
    asm volatile("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

std::uint64_t processor_time() {
    std::uint32_t low = 0, high = 0;
    asm volatile("rdtsc" : "=a"(low), "=d"(high));
    return std::uint64_t{high} << 32 | low;
}

/// Code of SSE2 alone does not touch the upper halves of wider registers.
bool keeps_all_floats() { return true; }

void keep_floats(Host::FpRegisters &into) { asm volatile("fxsave64 %0" : "=m"(into) : : "memory"); }

void use_usual_modes() {
    constexpr std::uint32_t usual = 0x1f80; // no exception is unmasked (psABI 3.2.1)
    asm volatile("ldmxcsr %0" : : "m"(usual));
}

void put_floats_back(const Host::FpRegisters &from) { asm volatile("fxrstor64 %0" : : "m"(from) : "memory"); }

CallPlace place_of_begun(const Host::Registers &registers) {
    return {registers.sp, *reinterpret_cast<const std::uint64_t *>(registers.sp)};
}

/// `ret` has left the address below the stack pointer, where signals' handlers leave it, too (the red zone).
CallPlace place_of_returned(const Host::Registers &registers) {
    const std::uint64_t at = registers.sp - sizeof(std::uint64_t);
    return {at, *reinterpret_cast<const std::uint64_t *>(at)};
}

} // namespace ktrace::arch
