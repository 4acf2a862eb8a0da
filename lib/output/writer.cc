#include "output/writer.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <ctime>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/quiet_thread.h"

namespace ktrace::output {

namespace {

/// Holds SIGPIPE back in this thread, and takes away one that arose meanwhile.
class PipeGuard {
  public:
    explicit PipeGuard(bool on) : on_(on) {
        if (!on_) return;
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    PipeGuard(const PipeGuard &) = delete;
    ~PipeGuard() {
        if (!on_) return;
        timespec now{};
        if (!was_pending_)
            while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
            }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

  private:
    bool on_;
    bool was_pending_ = false;
    sigset_t pipe_, before_;
};

/// A descriptor that another process made non-blocking: waits until it takes more.
void wait_until_writable(int fd) {
    pollfd wanted{fd, POLLOUT, 0};
    ::poll(&wanted, 1, -1);
}

/// Writes all, and adds to `done` what is written; returns 0 or errno. `is_pipe`: in pieces that a pipe takes as a
/// whole or not at all, so that a write that waits for the reader, for ever perhaps, has written nothing.
template <typename Count> int write_all(int fd, bool is_pipe, std::string_view text, Count &done) {
    while (!text.empty()) {
        const std::string_view piece = text.substr(0, is_pipe ? PIPE_BUF : text.size());
        ssize_t written = ::write(fd, piece.data(), piece.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
            done += static_cast<std::uint64_t>(written);
        } else if (errno == EAGAIN)
            wait_until_writable(fd);
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

Error::Kind kind_of(int error) {
    if (error == EACCES || error == EPERM || error == EROFS) return Error::Kind::denied;
    return error == ENOENT || error == ENOTDIR ? Error::Kind::not_found : Error::Kind::system;
}

const char *advice(int error) {
    switch (error) {
    case ENOSPC: return "make room, or write elsewhere";
    case EDQUOT: return "the quota is used up: write elsewhere";
    case EFBIG: return "the file may not grow further: write elsewhere";
    case EACCES:
    case EPERM:
    case EROFS: return "choose a file in a directory that you may write to";
    case ENOENT:
    case ENOTDIR: return "create its directory first";
    case EISDIR: return "name a file in it";
    default: return "";
    }
}

} // namespace

bool is_pipe_like(int fd) {
    struct stat status;
    return fstat(fd, &status) != 0 || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
}

/// The state that the two threads share.
struct Writer::Background {
    Background(int fd_, bool guard_, std::size_t most_, std::function<void()> wake_, Around around_)
        : fd(fd_), guard(guard_), most(most_), wake(std::move(wake_)), around(std::move(around_)) {}

    const int fd;
    const bool guard;
    const std::size_t most;
    const std::function<void()> wake;
    const Around around;

    std::mutex mutex; // of what follows
    std::condition_variable changed;
    std::deque<std::string> waiting;
    bool ending = false;
    bool told = false; // the failure

    std::atomic<std::size_t> size = 0; // of what waits, and of what is being written
    std::atomic<int> error = 0;        // errno of the failure
    std::atomic<std::uint64_t> written = 0;
};

Writer::Writer(int fd, std::string name) : fd_(fd), name_(std::move(name)), guard_(is_pipe_like(fd)) {}

Writer::Writer(Fd owned, std::string name)
    : owned_(std::move(owned)), fd_(owned_.get()), name_(std::move(name)), guard_(is_pipe_like(fd_)) {}

Result<Writer> Writer::create(const std::string &path) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd) {
        int error = errno;
        if (error == EINTR) // a FIFO is open when it has a reader
            return fail(Error::Kind::given_up, "interrupted before a reader has opened the output file " + path);
        return fail(kind_of(error), "cannot open the output file " + path + ": " + std::strerror(error), advice(error));
    }
    return Writer(std::move(fd), path);
}

void Writer::write(std::string_view text) {
    buffer_ += text;
    appended();
}

void Writer::drain() {
    if (buffer_.empty()) return;
    drained_ += buffer_.size();
    if (background_ && !failed()) {
        background_->size += buffer_.size();
        std::lock_guard lock(background_->mutex);
        background_->waiting.push_back(std::exchange(buffer_, {}));
        background_->changed.notify_all();
    } else if (!failed_) {
        PipeGuard guard(guard_);
        if (int error = write_all(fd_, guard_, buffer_, written_); error != 0) give_up(error);
    }
    buffer_.clear();
}

void Writer::write_in_background(std::size_t most, std::function<void()> wake, Around around) {
    flush();
    background_ = std::make_shared<Background>(fd_, guard_, most, std::move(wake), std::move(around));
    // Its end is not waited for: a write that blocks for ever ends with the process.
    try {
        start_quiet_thread([shared = background_] { write_waiting(shared); }).detach();
    } catch (const std::system_error &) { // there can be none: each write is waited for
        background_.reset();
    }
}

void Writer::write_waiting(const std::shared_ptr<Background> &background) {
    constexpr std::chrono::milliseconds until_woken{2}; // a call may come before the other's wait begins
    Background &shared = *background;
    std::unique_lock lock(shared.mutex);
    while (!shared.ending && shared.error == 0) {
        if (shared.waiting.empty()) {
            shared.changed.wait(lock);
            continue;
        }
        std::string text = std::move(shared.waiting.front());
        shared.waiting.pop_front();
        lock.unlock();
        auto write = [&] {
            PipeGuard guard(shared.guard);
            if (int error = write_all(shared.fd, shared.guard, text, shared.written); error != 0) shared.error = error;
        };
        shared.around ? shared.around(write) : write();
        lock.lock();
        shared.size -= text.size();
        shared.changed.notify_all();
    }
    while (!shared.ending && !shared.told) {
        shared.wake();
        shared.changed.wait_for(lock, until_woken);
    }
}

std::uint64_t Writer::written() const { return written_ + (background_ ? background_->written.load() : 0); }

bool Writer::has_room() const { return !background_ || background_->size < background_->most; }

bool Writer::is_taken() const {
    pollfd wanted{fd_, POLLOUT, 0};
    return ::poll(&wanted, 1, 0) != 0;
}

void Writer::finish(const std::function<bool()> &is_enough) {
    constexpr std::chrono::milliseconds between_questions{50};
    drain();
    if (!background_) return;
    bool enough = false;
    {
        std::unique_lock lock(background_->mutex);
        while (background_->size != 0 && background_->error == 0 && !(enough = is_enough()))
            background_->changed.wait_for(lock, between_questions);
        background_->ending = true;
        background_->changed.notify_all();
    }
    failed();
    if (enough) failed_ = closed_ = true;
    written_ = written();
    background_.reset();
}

bool Writer::failed() {
    if (!failed_ && background_ && background_->error != 0) {
        give_up(background_->error);
        std::lock_guard lock(background_->mutex);
        background_->told = true;
    }
    return failed_;
}

void Writer::give_up(int error) {
    failed_ = true;
    closed_ = error == EPIPE;
    error_ = error;
}

Status Writer::take_error() {
    if (!failed_ || closed_ || told_) return {};
    told_ = true;
    return fail(kind_of(error_), "cannot write to " + name_ + ": " + std::strerror(error_), advice(error_));
}

} // namespace ktrace::output
