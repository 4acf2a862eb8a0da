// Page: our page in one address space (arch/rescue.h says how it looks), as the ktrace that wrote it keeps it: what
// traps there are, told before they are planted, and the process's action for SIGTRAP, which is ours for as long as the
// page is there. Killed at any moment, ktrace leaves what is needed to run on, and to clean up after it.
//
// Invariants: (1) the page is unmapped only when no process's action leads into it; (2) an action that the process has
// set itself meanwhile is never replaced by an older one; (3) a handler of the process's own is never replaced: its
// traps are then taken out by the guardian alone.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "arch/host.h"
#include "base/result.h"
#include "os/proc/procfs.h"
#include "os/tracee/inject_syscall.h"
#include "os/tracee/stopped.h"
#include "target/address_space.h"

namespace ktrace::recovery {

/// With what something is done in a process: its memory, and a stopped task that makes system calls.
struct Hands {
    target::AddressSpace &space;
    VirtAddr syscall_instruction;
    os::Waiter &waiter;
    os::Stopped &stopped;
};

class Page {
  public:
    bool mapped() const { return address_.value != 0; }
    VirtAddr address() const { return address_; }
    bool contains(VirtAddr pc) const;
    /// How many seccomp filters have let it be made. Nothing: an older ktrace made it, which did not say.
    std::optional<std::uint64_t> filters() const {
        return header_.filters != 0 ? std::optional(header_.filters - 1) : std::nullopt;
    }
    /// What is there is what was written: the program has neither unmapped it nor mapped something else over it.
    bool is_there(target::AddressSpace &space) const;
    /// By the last look at the maps (forget_lost): no code of ours can be run there any more.
    bool is_lost() const { return lost_; }
    /// Forgets the page and tables that are not there any more. False: there was nothing to forget.
    bool forget_lost(const std::vector<os::Mapping> &maps, target::AddressSpace &space);
    /// How many traps can still be told.
    std::size_t room() const;

    /// Makes room for `entries` more; the first time it maps the page and installs the handler, where the process has
    /// none of its own. Errors: refused (mmap is forbidden), gone.
    Status ensure(const Hands &hands, std::size_t entries);

    /// Takes over the page that another ktrace has left, to take it out.
    static Page adopt(VirtAddr address, const ktrace_recovery_header &header);

    /// Written by a ktrace of this build, as far as its handler and what it tells can show.
    static bool is_of_this_build(target::AddressSpace &space, VirtAddr address, const ktrace_recovery_header &header);

    /// Tells of a trap that is to be planted. False: there is no room, or the memory cannot be written.
    bool add(target::AddressSpace &space, const ktrace_recovery_entry &entry);
    /// Tells of a mapping with slots.
    void add_arena(target::AddressSpace &space, VirtAddr start, std::uint64_t size);

    /// From before a task with this stack pointer is told of another signal in the place of a trap's until that is
    /// done, and it is told of none: VirtAddr{}. Nothing is written into what the program has mapped over the page, nor
    /// where the page's last ktrace was killed in between: that task may be in the handler for long, on a busy
    /// processor.
    void retell(target::AddressSpace &space, VirtAddr sp);

    /// Before a task's signals are blocked for a step: its own mask, for the handler. `tid`: its number in its own pid
    /// namespace.
    void keep_mask(target::AddressSpace &space, std::uint64_t tid, std::uint64_t mask);

    /// The program has set its action for SIGTRAP: that is what it gets back from now on. Where it has none of its own
    /// now, ours is to be put in its place again (renew_action).
    void note_action(target::AddressSpace &space, const ktrace_recovery_action &set);
    /// The kernel has reset the process's action for SIGTRAP (a trap in a task that blocks it does that): puts back
    /// what it was.
    Status renew_action(const Hands &hands);
    /// That the action is not there any more is the kernel's doing. False: the program has set another one out of
    /// sight, which is what it gets back.
    Result<bool> was_reset(const Hands &hands);
    /// True where such a reset shows in what the process catches, and cannot be the program's doing (SA_RESETHAND).
    bool shows_resets() const;
    /// How often the action may have become another one, or may have been put back.
    std::uint32_t changes() const { return changes_; }
    /// True where the process's action is one that such a reset would lose.
    bool has_action() const { return installed() || header_.before.handler != 0; }
    /// The handler is ours: nobody but ktrace expects a SIGTRAP in this process.
    bool installed() const { return header_.installed == ktrace_recovery_ours; }
    bool ignored_before() const { return header_.before.handler == 1; }

    /// The handler is ours where the program ignores SIGTRAP: an exec resets it to the default.
    bool stood_for_ignoring() const { return installed() && ignored_before(); }
    /// The stopped task has called exec: the program that begins ignores SIGTRAP, as it does untraced.
    Status ignore_after_exec(const Hands &hands) const;

    /// The process of the stopped task gets back the action that it had. False: the action leads into the page still,
    /// or may do so: somebody in the process has set another one since, and may have kept ours.
    Result<bool> restore_action(const Hands &hands) const;
    /// Unmaps the page and its tables. Every process's action was restored.
    Status unmap(const Hands &hands);

    /// The page's mapping and its tables' own: start and size.
    std::vector<std::pair<VirtAddr, std::uint64_t>> mappings() const;
    /// The kernel has given a fork's child zeros in its place (MADV_WIPEONFORK), or it was just mapped again.
    bool is_wiped(const std::vector<os::Mapping> &maps, target::AddressSpace &space) const;
    /// The memory of a fork's child has what this had at the fork, or nothing: writes it anew as it is now.
    bool write_all(target::AddressSpace &space) const;

  private:
    struct Table {
        VirtAddr address;
        std::uint64_t mapping_size = 0; // 0: it lies in the page's own mapping
        std::vector<ktrace_recovery_entry> entries;
        std::size_t used = 0;
        std::size_t free() const { return entries.size() / 2 - used; }
    };
    Status create(const Hands &hands, std::size_t entries);
    Status grow(const Hands &hands, std::size_t entries);
    Status take_action(const Hands &hands, bool ignored);
    Status put_back_action(const Hands &hands) const;
    os::Through through_without_trap() const; // for calls after which the process may ignore SIGTRAP again
    bool write_header(target::AddressSpace &space) const;
    VirtAddr action_at(std::size_t offset) const { return address_ + static_cast<std::int64_t>(offset); }

    VirtAddr address_;
    std::uint32_t changes_ = 0;
    bool was_retold_ = false;        // by the ktrace that left it
    bool lost_ = false;              // something else is there; the process's action may be ours still
    ktrace_recovery_action first_{}; // what the process's action was when the page was made
    ktrace_recovery_header header_{};
    std::array<ktrace_recovery_mask, ktrace_recovery_most_masks> masks_{};
    std::vector<Table> tables_;
};

} // namespace ktrace::recovery
