#include "upgrade/waking.h"

#include <chrono>

#include "base/quiet_thread.h"
#include "os/self/own_signals.h"

namespace ktrace::upgrade {

Waking::~Waking() {
    {
        std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void Waking::start() {
    if (thread_.joinable()) return;
    thread_ = start_quiet_thread([this, wake = os::OwnSignals::waker()] {
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, std::chrono::nanoseconds(every_ns_), [this] { return is_over_; })) wake();
    });
}

} // namespace ktrace::upgrade
