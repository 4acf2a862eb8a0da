// Ledger: memory that the tracing process shares with its guardian. It has the address of each process's recovery page,
// or that there can be none; the traps that are in no page; the mask and signal of each task in a step, which it gets
// back; and the program that `run` has started.
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

/// A trap that is in no page: the process has none, or none yet.
struct PagelessTrap {
    Pid pid;
    VirtAddr at;
    std::array<std::byte, 8> original; // what the trap replaces,
    std::size_t size = 0;              // and how many bytes that is
};

/// The state that a task gets back. In a step its signals are blocked, and one that came before is held. During an
/// injected call its syscall user dispatch is off.
struct SavedState {
    Pid pid;
    Tid tid;
    bool has_mask = false;
    std::uint64_t mask = 0; // its own, while the step's is in force
    bool has_dispatch = false;
    os::SyscallUserDispatch dispatch; // its own, while it is off
    bool has_signal = false;
    siginfo_t held; // taken from it
};

class Ledger : public os::DispatchKeeper {
  public:
    Ledger();
    ~Ledger() override;

    /// The process's page; 0: it is traced without one.
    void cover(Pid pid, VirtAddr page);
    /// Nothing of ours is left anywhere.
    void clear();
    /// Nothing of ours is left in this process, or it has ended.
    void drop(Pid pid);
    std::vector<Covered> covered() const;
    bool empty() const { return covered().empty() && pageless_traps().empty(); }

    /// A trap is about to be planted. Not entered where there is no room.
    void note(const PagelessTrap &trap);
    /// The process ends, and another one stays in its memory.
    void hand_over_traps(Pid from, Pid to);
    std::vector<PagelessTrap> pageless_traps() const;

    /// Replaces that task's entry. Not entered where there is no room.
    void save(const SavedState &saved);
    /// The task has got everything back.
    void forget(Tid tid);
    /// Notes the dispatch beside what is noted of the task.
    void keep(Tid task, const os::SyscallUserDispatch &own) override;
    void forget_dispatch(Tid task) override;
    /// The state that the tasks of a process get back.
    std::vector<SavedState> saved(Pid pid) const;

    void set_program(Pid pid);
    Pid program() const;

  private:
    static constexpr std::size_t most = 65536, most_traps = 1 << 20, most_saved = 4096;
    struct Entry {
        std::atomic<std::uint64_t> page;
        std::atomic<pid_t> pid;
    };
    struct TrapEntry {
        std::atomic<pid_t> pid;
        PagelessTrap trap;
    };
    struct SavedEntry {
        std::atomic<pid_t> tid;
        SavedState saved;
    };
    SavedEntry *saved_entry(pid_t tid);
    void forget_traps(Pid pid);

    struct Shared {
        std::atomic<pid_t> program;
        std::atomic<std::size_t> used; // entries from the front that may hold something
        Entry entries[most];
        std::atomic<std::size_t> traps_used;
        TrapEntry traps[most_traps];
        std::atomic<std::size_t> saved_used;
        SavedEntry saved[most_saved];
    };
    Shared *shared_; // nullptr: there was no memory; then nothing is noted
};

} // namespace ktrace::recovery
