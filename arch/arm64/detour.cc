#include "arm64/detour.h"

namespace ktrace::arch {

const ByteSet &Arm64Detour::trap_byte() {
    static const ByteSet none;
    return none;
}

} // namespace ktrace::arch
