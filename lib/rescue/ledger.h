// Ledger: what the tracing process tells its guardian, in memory that the two share: where in each process the rescue
// page is, and the program that `run` has started.
//
// Invariants: a process is entered before the first trap is planted in it; an entry is complete when its pid is there;
// one process writes, the other reads when the first is dead.
#pragma once

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

    void set_program(Pid pid);
    Pid program() const;

  private:
    static constexpr std::size_t most = 65536;
    struct Entry {
        std::atomic<std::uint64_t> page;
        std::atomic<pid_t> pid;
    };
    struct Shared {
        std::atomic<pid_t> program;
        std::atomic<std::size_t> used; // entries from the front that may hold something
        Entry entries[most];
    };
    Shared *shared_; // nullptr: there was no memory; then nothing is told
};

} // namespace ktrace::rescue
