// Ledger: what the tracing process tells its guardian, in memory that the two share: where in each process the rescue
// page is, what traps there are that no page tells of, and the program that `run` has started.
//
// Invariants: a process, or the trap itself, is entered before the trap is planted; an entry is complete when its pid
// is there; one process writes, the other reads when the first is dead.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

#include "base/addr.h"
#include "base/ids.h"

namespace ktrace::rescue {

struct Covered {
    Pid pid;
    VirtAddr page;
};

/// A trap in a process that has no page yet.
struct Untold {
    Pid pid;
    VirtAddr at;
    std::array<std::byte, 8> original; // what the trap replaces,
    std::size_t size = 0;              // and how many bytes that is
};

class Ledger {
  public:
    Ledger();
    ~Ledger();
    Ledger(const Ledger &) = delete;

    /// The process has our page there.
    void cover(Pid pid, VirtAddr page);
    /// Nothing of ours is left anywhere.
    void clear();
    /// Nothing of ours is left in this process, or it has ended.
    void drop(Pid pid);
    std::vector<Covered> covered() const;
    bool empty() const { return covered().empty() && untold().empty(); }

    /// A trap is to be planted. Beyond what there is room for nothing is told.
    void tell(const Untold &trap);
    /// The process's page tells of its traps now.
    void forget_untold(Pid pid);
    std::vector<Untold> untold() const;

    void set_program(Pid pid);
    Pid program() const;

  private:
    static constexpr std::size_t most = 65536, most_traps = 1 << 20;
    struct Entry {
        std::atomic<std::uint64_t> page;
        std::atomic<pid_t> pid;
    };
    struct TrapEntry {
        std::atomic<pid_t> pid;
        Untold trap;
    };
    struct Shared {
        std::atomic<pid_t> program;
        std::atomic<std::size_t> used; // entries from the front that may hold something
        Entry entries[most];
        std::atomic<std::size_t> traps_used;
        TrapEntry traps[most_traps];
    };
    Shared *shared_; // nullptr: there was no memory; then nothing is told
};

} // namespace ktrace::rescue
