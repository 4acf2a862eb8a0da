#include "plugin/host/turns.h"

#include <climits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plugin/host/guard.h"

namespace ktrace::plugin::host {

Wire *wire = nullptr;
int wire_fd = -1;
Window window;

void wait_for_turn() {
    while (wire->turn.load(std::memory_order_acquire) != turn_host)
        ::syscall(SYS_futex, &wire->turn, FUTEX_WAIT, turn_ktrace, nullptr, nullptr, 0);
}

void hand_over(Request request) {
    wire->kind = static_cast<std::uint32_t>(request);
    wire->turn.store(turn_ktrace, std::memory_order_release);
    ::syscall(SYS_futex, &wire->turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::int64_t ask(Request request) {
    hand_over(request);
    wait_for_turn();
    std::int64_t result = wire->result;
    leave_if_late();
    return result;
}

} // namespace ktrace::plugin::host
