// x86's names of the faults behind signals (Intel SDM vol. 3, 6.3.1).
#include <csignal>

#include "x86_64/x86_64.h"

namespace ktrace::arch {

int X86_64::fault_number(int signal, bool with_address) {
    switch (signal) {
    case SIGFPE: return 0;
    case SIGTRAP: return 3;
    case SIGILL: return 6;
    case SIGBUS: return with_address ? 17 : 12;
    default: return with_address ? 14 : 13;
    }
}

} // namespace ktrace::arch
