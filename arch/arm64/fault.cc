// arm64's names of the faults behind signals: exception classes (Arm ARM, ESR_ELx.EC).
#include <csignal>

#include "arm64/arm64.h"

namespace ktrace::arch {

int Arm64::fault_number(int signal, bool with_address) {
    switch (signal) {
    case SIGFPE: return 0x2c;
    case SIGTRAP: return 0x3c;
    case SIGILL: return 0x00;
    case SIGBUS: return 0x26;
    default: return with_address ? 0x24 : 0x20;
    }
}

} // namespace ktrace::arch
