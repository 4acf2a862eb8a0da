#include "os/self/ticker.h"

#include <chrono>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

#include "base/quiet_thread.h"

namespace ktrace::os {

namespace {

constexpr long period_ns = 1'000'000;
constexpr int beat_signal = SIGURG; // a signal of the old kind is raised even where nothing can be queued

int tick_signal() { return SIGRTMIN + 4; }

thread_local sigjmp_buf *way_out = nullptr;

void on_tick(int) { // without SA_RESTART: a wait ends
    if (way_out) ::siglongjmp(*way_out, 1);
}

void catch_ticks(int signal) {
    struct sigaction action {};
    action.sa_handler = on_tick;
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
}

} // namespace

/// A thread that signals the one which made it, while it is switched on.
class Ticker::Beat {
  public:
    Beat() : waiter_(::gettid()) {
        catch_ticks(beat_signal);
        try {
            thread_ = start_quiet_thread([this] { run(); });
        } catch (const std::system_error &) { // none is to be had
        }
    }
    ~Beat() {
        tell(false, true);
        if (is_there()) thread_.join();
    }
    Beat(const Beat &) = delete;

    bool is_there() const { return thread_.joinable(); }
    void set(bool on) { tell(on, false); }

  private:
    void tell(bool on, bool end) {
        std::lock_guard lock(mutex_);
        on_ = on;
        end_ = end;
        changed_.notify_one();
    }

    void run() {
        std::unique_lock lock(mutex_);
        while (!end_) {
            if (!on_)
                changed_.wait(lock);
            else if (changed_.wait_for(lock, std::chrono::nanoseconds(period_ns)) == std::cv_status::timeout && on_)
                ::syscall(SYS_tgkill, ::getpid(), waiter_, beat_signal);
        }
    }

    pid_t waiter_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool on_ = false, end_ = false;
    std::thread thread_;
};

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

Ticker::Ticker() = default;

Ticker::~Ticker() {
    if (has_timer_) ::timer_delete(timer_);
}

/// Starts a source of ticks. False: nothing can be had.
bool Ticker::make() {
    if (has_timer_ || beat_) return true;
    catch_ticks(tick_signal());
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = tick_signal();
    event._sigev_un._tid = ::gettid();
    has_timer_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (!has_timer_) beat_ = std::make_unique<Beat>();
    if (beat_ && !beat_->is_there()) beat_.reset();
    return has_timer_ || beat_;
}

bool Ticker::start() {
    if (running_) return true;
    if (!make()) return false;
    itimerspec each{};
    each.it_value.tv_nsec = each.it_interval.tv_nsec = period_ns;
    if (beat_) beat_->set(true);
    running_ = beat_ || ::timer_settime(timer_, 0, &each, nullptr) == 0;
    return running_;
}

void Ticker::stop() {
    if (!running_) return;
    itimerspec off{};
    if (beat_)
        beat_->set(false);
    else
        ::timer_settime(timer_, 0, &off, nullptr);
    running_ = false;
}

} // namespace ktrace::os
