// LiveLine: the line at the bottom of a terminal that shows, while a trace runs, how fast hits come and what they cost.
// A thread of its own draws it once a second.
//
// Invariants: a terminal that takes nothing (Ctrl-S) does not hold up the tracing thread, which only answers a
// question; other output to the same terminal comes between two drawings (aside), never behind half a line; nothing is
// drawn while another job is in the terminal's foreground.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

namespace ktrace::output {

/// The figures to show, all of them since the trace began.
struct Progress {
    std::uint64_t time_ns = 0; // CLOCK_MONOTONIC, when that was so
    std::uint64_t busy_ns = 0; // processor time of the tracing thread
    std::uint64_t hits = 0, dropped = 0;
};

/// The text of the time between two answers, without a line's end. Pure.
///
///     123456 hits, 12345 a second, 8.1 us each, 10% of a processor
std::string progress_text(const Progress &before, const Progress &now);

class LiveLine {
  public:
    /// Can there be one on this descriptor: a terminal that can erase a line?
    static bool is_possible(int fd);
    /// Takes away what a process that was killed had drawn there.
    static void erase_what_is_left(int fd);

    /// `job`: the process group that has to be in the foreground. `wake`, called by the thread that draws, ends a wait
    /// of the tracing thread, so that it sees the question.
    LiveLine(int fd, pid_t job, std::function<void()> wake);
    ~LiveLine();
    LiveLine(const LiveLine &) = delete;

    /// From now on it is drawn; `now`: how it begins.
    void begin(const Progress &now);
    /// Is there a question to answer?
    bool asks() const;
    void answer(const Progress &now);
    /// Calls `write`, which writes whole lines to the terminal, while the line is not there.
    void aside(const std::function<void()> &write);
    /// Takes the line away for good. Where the terminal takes nothing, that is done when it does so again.
    void end();

  private:
    struct Shared;
    static void draw_again_and_again(const std::shared_ptr<Shared> &shared);

    std::shared_ptr<Shared> shared_; // with the thread, which a terminal may hold up for ever
};

} // namespace ktrace::output
