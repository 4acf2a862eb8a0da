#include "os/ticker.h"

#include <csetjmp>
#include <csignal>

#include <unistd.h>

namespace ktrace::os {

namespace {

constexpr long period_ns = 1'000'000;

int tick_signal() { return SIGRTMIN + 4; }

thread_local sigjmp_buf *way_out = nullptr;

void on_tick(int) { // without SA_RESTART: a wait ends
    if (way_out) ::siglongjmp(*way_out, 1);
}

} // namespace

bool Ticker::until_tick(int (*call)(Tid), Tid task, int &result) {
    sigjmp_buf here;
    if (sigsetjmp(here, 1) != 0) {
        way_out = nullptr;
        return false;
    }
    way_out = &here;
    result = call(task);
    way_out = nullptr;
    return true;
}

Ticker::~Ticker() {
    if (made_) ::timer_delete(timer_);
}

bool Ticker::start() {
    if (running_) return true;
    if (!made_) {
        struct sigaction action {};
        action.sa_handler = on_tick;
        sigemptyset(&action.sa_mask);
        ::sigaction(tick_signal(), &action, nullptr);
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = tick_signal();
        event._sigev_un._tid = ::gettid();
        if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) return false;
        made_ = true;
    }
    itimerspec each{};
    each.it_value.tv_nsec = each.it_interval.tv_nsec = period_ns;
    running_ = ::timer_settime(timer_, 0, &each, nullptr) == 0;
    return running_;
}

void Ticker::stop() {
    if (!running_) return;
    itimerspec off{};
    ::timer_settime(timer_, 0, &off, nullptr);
    running_ = false;
}

} // namespace ktrace::os
