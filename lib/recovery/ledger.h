// Ledger: what the tracing process tells its guardian, in memory that the two share: where in each process the rescue
// page is or that there can be none, what traps there are that no page tells of, what is owed to a task whose signals
// wait for the end of an instruction, and the program that `run` has started.
//
// Invariants: a process, or the trap itself, is entered before the trap is planted; an entry is complete when its pid
// (its tid) is there; one process writes, the other reads when the first is dead.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include <csignal>

#include "base/addr.h"
#include "base/ids.h"
#include "os/tracee/syscall_user_dispatch.h"

namespace ktrace::recovery {

struct Covered {
    Pid pid;
    VirtAddr page; // 0: the process may not map memory; its debug registers may be ours
};

/// A trap in a process that has no page, or none yet.
struct Untold {
    Pid pid;
    VirtAddr at;
    std::array<std::byte, 8> original; // what the trap replaces,
    std::size_t size = 0;              // and how many bytes that is
};

/// What a task has to get back: in the middle of an instruction its signals are blocked, and one that came before it is
/// held; a system call for us is made of one whose calls would be sent back to it.
struct Owed {
    Pid pid;
    Tid tid;
    bool has_mask = false;
    std::uint64_t mask = 0; // its own, while others are blocked, too
    bool has_dispatch = false;
    os::SyscallUserDispatch dispatch; // its own, while its calls are not sent back to it
    bool has_signal = false;
    siginfo_t held; // taken from it
};

class Ledger : public os::DispatchKeeper {
  public:
    Ledger();
    ~Ledger() override;

    /// The process has our page there; 0: it is traced without one.
    void cover(Pid pid, VirtAddr page);
    /// Nothing of ours is left anywhere.
    void clear();
    /// Nothing of ours is left in this process, or it has ended.
    void drop(Pid pid);
    std::vector<Covered> covered() const;
    bool empty() const { return covered().empty() && untold().empty(); }

    /// A trap is to be planted. Beyond what there is room for nothing is told.
    void tell(const Untold &trap);
    /// The process goes, and another one stays in its memory.
    void hand_over_untold(Pid from, Pid to);
    std::vector<Untold> untold() const;

    /// In place of what was said of that task before. Beyond what there is room for nothing is told.
    void owe(const Owed &owed);
    /// It has all that is its own.
    void settle(Tid tid);
    /// Whatever else it is owed.
    void keep(Tid task, const os::SyscallUserDispatch &own) override;
    void settle_dispatch(Tid task) override;
    /// What the tasks of a process are owed.
    std::vector<Owed> owed(Pid pid) const;

    void set_program(Pid pid);
    Pid program() const;

  private:
    static constexpr std::size_t most = 65536, most_traps = 1 << 20, most_owed = 4096;
    struct Entry {
        std::atomic<std::uint64_t> page;
        std::atomic<pid_t> pid;
    };
    struct TrapEntry {
        std::atomic<pid_t> pid;
        Untold trap;
    };
    struct OwedEntry {
        std::atomic<pid_t> tid;
        Owed owed;
    };
    OwedEntry *owed_entry(pid_t tid);
    void forget_untold(Pid pid);

    struct Shared {
        std::atomic<pid_t> program;
        std::atomic<std::size_t> used; // entries from the front that may hold something
        Entry entries[most];
        std::atomic<std::size_t> traps_used;
        TrapEntry traps[most_traps];
        std::atomic<std::size_t> owed_used;
        OwedEntry owed[most_owed];
    };
    Shared *shared_; // nullptr: there was no memory; then nothing is told
};

} // namespace ktrace::recovery
