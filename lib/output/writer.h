// Writer: a buffer in front of the file descriptor that events go to.
//
// It writes by itself or, in the background, by a thread of its own: then a slow reader does not hold the trace up.
//
// Invariants: a SIGPIPE never arises from it, whatever the process does with that signal; after the first failure
// nothing more is written (what comes is dropped and counted as bytes), and the failure is reported once; all that was
// taken before flush() (in the background: finish()) returned without an error is with the kernel; in the background
// has_room() says how much waits, and callers keep to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace ktrace::output {

/// A pipe, a socket, or nothing that could be looked at: writing to it can raise SIGPIPE.
bool is_pipe_like(int fd);

class Writer {
  public:
    static constexpr std::size_t buffer_size = 64 * 1024;

    /// Writes to a descriptor that it does not own (standard output). `name` is what errors call it.
    Writer(int fd, std::string name);
    /// Creates (or empties) a file, mode 0666 under the umask. Errors: denied, not_found, given_up (a signal ended the
    /// wait for the reader of a FIFO), system.
    static Result<Writer> create(const std::string &path);

    Writer(Writer &&) = default;
    Writer &operator=(Writer &&) = default;

    /// Takes text; it is written when the buffer is full (64 KiB) or on flush().
    void write(std::string_view text);

    /// Where lines are put together in place: append to it, then call appended().
    std::string &buffer() { return buffer_; }
    void appended() {
        if (buffer_.size() >= buffer_size) drain();
    }

    /// Writes out what is buffered: call it when the loop is idle, and at the end.
    void flush() { drain(); }

    /// From now on a thread writes. `most`: bytes that are to wait for it; `wake`: called by the thread, again and
    /// again until failed() has reported it, when writing has failed. `around`, where there is one, calls what it is
    /// given, which writes.
    using Around = std::function<void(const std::function<void()> &)>;
    void write_in_background(std::size_t most, std::function<void()> wake, Around around = {});
    /// False: as much as is to wait for the thread waits.
    bool has_room() const;
    /// False: the reader has not yet taken all that was written.
    bool is_taken() const;
    /// Waits until all is written and ends the thread. Asks `is_enough` every now and then whether the wait is to end
    /// without that; the rest is dropped then, and later output, too.
    void finish(const std::function<bool()> &is_enough);
    bool pending() const { return !buffer_.empty(); }
    /// Bytes that it was given since it was made, and those of them, the first ones, that are with the kernel.
    std::uint64_t taken() const { return drained_ + buffer_.size(); }
    std::uint64_t written() const;

    /// True once writing failed: the trace has no reader any more.
    bool failed();
    /// True where the reader went away (EPIPE): no error to complain of, but a reason to end.
    bool closed() const { return closed_; }
    /// The failure, the first time that it is asked for after it happened; nothing where there is none or it was
    /// reported.
    Status take_error();

  private:
    struct Background;

    Writer(Fd owned, std::string name);
    static void write_waiting(const std::shared_ptr<Background> &background);
    void drain();
    void give_up(int error);

    Fd owned_;
    int fd_;
    std::string name_;
    std::string buffer_;
    std::uint64_t drained_ = 0; // bytes that have left buffer_
    std::uint64_t written_ = 0; // by itself
    bool guard_ = false;        // the descriptor may raise SIGPIPE: a pipe, or a socket
    bool failed_ = false, closed_ = false, told_ = false;
    int error_ = 0;
    std::shared_ptr<Background> background_; // nullptr: writes by itself
};

} // namespace ktrace::output
