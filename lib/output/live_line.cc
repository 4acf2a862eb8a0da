#include "output/live_line.h"
#include "output/terminal.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/quiet_thread.h"
#include "output/writer.h"

namespace ktrace::output {

namespace {

constexpr std::chrono::seconds between_drawings{1};
constexpr std::string_view erase = "\r\033[K";
constexpr std::size_t usual_width = 80;

void write_to(int fd, std::string_view text) {
    Writer terminal(fd, "the terminal");
    terminal.write(text);
    terminal.flush();
}

/// The part that fits into one line: one that is broken cannot be erased.
std::string fitting(int fd, std::string text) {
    winsize size{};
    bool told = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
    text.resize(std::min(text.size(), (told ? std::size_t{size.ws_col} : usual_width) - 1));
    return text;
}

} // namespace

std::string progress_text(const Progress &before, const Progress &now) {
    const std::uint64_t passed_ns = std::max<std::uint64_t>(now.time_ns - before.time_ns, 1);
    const std::uint64_t hits = now.hits - before.hits, busy_ns = now.busy_ns - before.busy_ns;
    const double passed = static_cast<double>(passed_ns), busy = static_cast<double>(busy_ns);
    std::string text = fmt::format("{} hits, {:.0f} a second", now.hits, static_cast<double>(hits) * 1e9 / passed);
    if (hits != 0) text += fmt::format(", {:.1f} us each", busy / static_cast<double>(hits) / 1000);
    text += fmt::format(", {:.0f}% of a processor", busy * 100 / passed);
    if (now.dropped != 0) text += fmt::format(", {} dropped", now.dropped);
    return text;
}

/// The state that the threads share.
struct LiveLine::Shared {
    Shared(int fd_, pid_t job_, std::function<void()> wake_) : fd(fd_), job(job_), wake(std::move(wake_)) {}

    const int fd;
    const pid_t job;
    const std::function<void()> wake;
    std::atomic<bool> asks = false;

    std::mutex mutex; // of the data below; never held during a write
    std::condition_variable changed;
    Progress answered;
    bool ending = false;

    std::mutex terminal; // of the data below; held by a thread that writes to the terminal
    std::string drawn;   // empty: the line is not there

    void take_away() {
        if (!drawn.empty()) write_to(fd, erase);
    }
    void draw() {
        if (!drawn.empty()) write_to(fd, drawn);
    }
    void replace(std::string text) {
        std::lock_guard lock(terminal);
        if (::tcgetpgrp(fd) != job) text.clear();
        std::string all = drawn.empty() && text.empty() ? std::string() : std::string(erase) + text;
        if (!all.empty()) write_to(fd, all);
        drawn = std::move(text);
    }
};

bool LiveLine::is_possible(int fd) { return is_able_terminal(fd); }

void LiveLine::erase_what_is_left(int fd) {
    if (is_possible(fd)) write_to(fd, erase);
}

LiveLine::LiveLine(int fd, pid_t job, std::function<void()> wake)
    : shared_(std::make_shared<Shared>(fd, job, std::move(wake))) {}

LiveLine::~LiveLine() { end(); }

void LiveLine::begin(const Progress &now) {
    shared_->answered = now;
    try {
        start_quiet_thread([shared = shared_] { draw_again_and_again(shared); }).detach();
    } catch (const std::system_error &) { // none is to be had: there is no line
    }
}

bool LiveLine::asks() const { return shared_->asks.load(std::memory_order_relaxed); }

void LiveLine::answer(const Progress &now) {
    std::lock_guard lock(shared_->mutex);
    shared_->answered = now;
    shared_->asks = false;
    shared_->changed.notify_all();
}

void LiveLine::draw_again_and_again(const std::shared_ptr<Shared> &shared) {
    std::unique_lock lock(shared->mutex);
    Progress before = shared->answered;
    auto is_ending = [&] { return shared->ending; };
    while (!shared->changed.wait_for(lock, between_drawings, is_ending)) {
        shared->asks = true;
        lock.unlock();
        shared->wake();
        lock.lock();
        shared->changed.wait(lock, [&] { return shared->ending || !shared->asks; });
        if (shared->ending) break;
        const Progress now = shared->answered;
        lock.unlock();
        shared->replace(fitting(shared->fd, progress_text(before, now)));
        before = now;
        lock.lock();
    }
    lock.unlock();
    shared->replace({}); // what was drawn while the end came
}

void LiveLine::aside(const std::function<void()> &write) {
    std::lock_guard lock(shared_->terminal);
    shared_->take_away();
    write();
    shared_->draw();
}

void LiveLine::end() {
    {
        std::lock_guard lock(shared_->mutex);
        if (shared_->ending) return;
        shared_->ending = true;
        shared_->changed.notify_all();
    }
    // The thread itself holds the terminal. It then takes the line away, or waits for a terminal that is
    // held.
    if (shared_->terminal.try_lock()) {
        std::lock_guard lock(shared_->terminal, std::adopt_lock);
        shared_->take_away();
        shared_->drawn.clear();
    }
}

} // namespace ktrace::output
