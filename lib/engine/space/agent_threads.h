// AgentThreads: the shared memory in which the agent of one address space (agent/layout.h) finds its threads and leaves
// records. ktrace has it mapped, too.
//
// Invariants: a place belongs to one task, from when it was given until that task has ended and its records are read;
// two tasks that live with the same thread pointer have none; `head` is ktrace's alone: that of the place is only a
// copy for the thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "agent/layout.h"
#include "base/addr.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"

namespace ktrace::engine {

class AgentThreads {
  public:
    static constexpr std::size_t size = sizeof(agent::Threads); // bytes
    /// Bytes of it that threads may touch before any has a place.
    static constexpr std::size_t first_part = offsetof(agent::Threads, thread);

    /// `file`: as it is mapped in the process at `address`. Errors: refused (it cannot be mapped here).
    static Result<std::shared_ptr<AgentThreads>> map(Fd file, VirtAddr address);
    ~AgentThreads();
    AgentThreads(const AgentThreads &) = delete;

    struct Place {
        Pid pid;
        Tid tid;
        std::uint64_t thread_pointer = 0;
        std::uint64_t head = 0; // bytes that were read
        agent::Thread *thread = nullptr;
        std::string name; // of the task, as it was last seen
    };

    VirtAddr address() const { return address_; }
    /// nullptr: the task has none.
    Place *of(Tid tid);
    std::map<pid_t, Place> &all() { return places_; }

    /// Gives a task a place. False: there is none left, or the thread pointer is another one's, too.
    bool give(Pid pid, Tid tid, std::uint64_t thread_pointer);
    /// The task has this thread pointer from now on: it begins, and does not run yet. Another task that had it has
    /// ended, though that was perhaps not reported, or runs with the same one.
    void claim(Tid tid, std::uint64_t thread_pointer);
    /// The task has ended, and its records were read.
    void take_back(Tid tid);

  private:
    AgentThreads(Fd file, VirtAddr address, agent::Threads *shared);
    VirtAddr address_of(const agent::Thread &thread) const;
    bool set_key(std::uint64_t thread_pointer, const agent::Thread &thread);
    void clear_key(std::uint64_t thread_pointer);

    Fd file_;
    VirtAddr address_;
    agent::Threads *shared_;
    std::map<pid_t, Place> places_;
    std::map<std::uint64_t, pid_t> contested_; // thread pointers, and the task that had each first
    std::vector<bool> used_;
};

} // namespace ktrace::engine
