#include "in_process.h"

#include <sys/auxv.h>

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

/// Not with SVE: what is written to a register of 128 bits clears the rest of the longer one that it lies in.
bool keeps_all_floats() {
    constexpr unsigned long sve = 1 << 22; // HWCAP_SVE
    return (::getauxval(AT_HWCAP) & sve) == 0;
}

void keep_floats(Host::FpRegisters &into) {
    std::uint64_t status = 0, control = 0;
    asm volatile("stp q0, q1, [%0]\n stp q2, q3, [%0, #32]\n stp q4, q5, [%0, #64]\n stp q6, q7, [%0, #96]\n"
                 "stp q8, q9, [%0, #128]\n stp q10, q11, [%0, #160]\n stp q12, q13, [%0, #192]\n"
                 "stp q14, q15, [%0, #224]\n stp q16, q17, [%0, #256]\n stp q18, q19, [%0, #288]\n"
                 "stp q20, q21, [%0, #320]\n stp q22, q23, [%0, #352]\n stp q24, q25, [%0, #384]\n"
                 "stp q26, q27, [%0, #416]\n stp q28, q29, [%0, #448]\n stp q30, q31, [%0, #480]"
                 :
                 : "r"(into.v)
                 : "memory");
    asm volatile("mrs %0, fpsr\n mrs %1, fpcr" : "=r"(status), "=r"(control));
    into.fpsr = static_cast<std::uint32_t>(status);
    into.fpcr = static_cast<std::uint32_t>(control);
}

void use_usual_modes() { asm volatile("msr fpcr, xzr"); }

void put_floats_back(const Host::FpRegisters &from) {
    asm volatile("ldp q0, q1, [%0]\n ldp q2, q3, [%0, #32]\n ldp q4, q5, [%0, #64]\n ldp q6, q7, [%0, #96]\n"
                 "ldp q8, q9, [%0, #128]\n ldp q10, q11, [%0, #160]\n ldp q12, q13, [%0, #192]\n"
                 "ldp q14, q15, [%0, #224]\n ldp q16, q17, [%0, #256]\n ldp q18, q19, [%0, #288]\n"
                 "ldp q20, q21, [%0, #320]\n ldp q22, q23, [%0, #352]\n ldp q24, q25, [%0, #384]\n"
                 "ldp q26, q27, [%0, #416]\n ldp q28, q29, [%0, #448]\n ldp q30, q31, [%0, #480]\n"
                 "msr fpsr, %1\n msr fpcr, %2"
                 :
                 : "r"(from.v), "r"(std::uint64_t{from.fpsr}), "r"(std::uint64_t{from.fpcr})
                 : "memory");
}

CallPlace place_of_begun(const Host::Registers &registers) { return {registers.sp, registers.x[30]}; }

/// The stack does not show that the call was made here.
CallPlace place_of_returned(const Host::Registers &registers) { return {registers.sp, registers.pc}; }

} // namespace ktrace::arch
