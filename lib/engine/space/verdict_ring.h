// VerdictRing: the last stops, each with its verdict and the resume of its task. A failed KT_CHECK prints them, and the
// log has a line of each.
//
// Invariant: to note a stop allocates and formats nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/addr.h"
#include "base/check.h"
#include "engine/space/classify.h"
#include "os/tracee/ptrace.h"
#include "os/tracee/wait.h"

namespace ktrace::engine {

class VerdictRing final : public CheckDump {
  public:
    static constexpr std::size_t size = 1000;
    static constexpr std::size_t longest_line = 120;

    /// Notes a stop; `pc`: of the task, where it was read. Returns the number of the entry: the first is 1.
    std::uint64_t note(const os::Stop &stop, std::optional<VirtAddr> pc, Verdict verdict);
    /// The task of that entry was resumed. Nothing where that is known already (its next stop is not dispatch's), or
    /// the entry is not kept any more.
    void note_resume(std::uint64_t number, os::Resume how, int signal);

    /// The line of an entry that is kept still, in `room` (of longest_line): `TID STOP PC → VERDICT → RESUME`.
    const char *line(std::uint64_t number, std::span<char, longest_line> room) const;
    /// How many stops were noted.
    std::uint64_t noted() const { return noted_; }

    /// All that are kept, oldest first, on standard error.
    void dump() const noexcept override;

  private:
    struct Entry {
        std::uint64_t pc = 0; // 0: not read
        pid_t tid = 0;
        os::Stop::Kind kind{};
        std::uint8_t signal = 0; // of the stop; exited, killed: its status
        Verdict verdict{};
        bool is_resumed = false;
        os::Resume how{};
        std::uint8_t resumed_with = 0; // signal
    };
    bool is_kept(std::uint64_t number) const { return number != 0 && noted_ - number < size; }

    std::array<Entry, size> entries_;
    std::uint64_t noted_ = 0;
};

} // namespace ktrace::engine
