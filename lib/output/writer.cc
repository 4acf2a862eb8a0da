#include "output/writer.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool is_pipe_like(int fd) {
    struct stat status;
    return fstat(fd, &status) != 0 || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
}

/// A descriptor that somebody made non-blocking: waits until it takes more.
void wait_until_writable(int fd) {
    pollfd wanted{fd, POLLOUT, 0};
    ::poll(&wanted, 1, -1);
}

/// Writes all; returns 0 or errno.
int write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        ssize_t written = ::write(fd, text.data(), text.size());
        if (written >= 0)
            text.remove_prefix(static_cast<std::size_t>(written));
        else if (errno == EAGAIN)
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
    case ENOSPC: return "make room, or write elsewhere with -o";
    case EDQUOT: return "the quota is used up; write elsewhere with -o";
    case EFBIG: return "the file may not grow further; write elsewhere with -o";
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

Writer::Writer(int fd, std::string name) : fd_(fd), name_(std::move(name)), guard_(is_pipe_like(fd)) {}

Writer::Writer(Fd owned, std::string name)
    : owned_(std::move(owned)), fd_(owned_.get()), name_(std::move(name)), guard_(is_pipe_like(fd_)) {}

Result<Writer> Writer::create(const std::string &path) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd) {
        int error = errno;
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
    if (!failed_) {
        PipeGuard guard(guard_);
        if (int error = write_all(fd_, buffer_); error != 0) give_up(error);
    }
    buffer_.clear();
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
