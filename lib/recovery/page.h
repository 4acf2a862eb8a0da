// Page: the recovery page of one address space (arch/recovery.h has its layout), as the ktrace that wrote it keeps it.
// It lists the traps, each before it is planted, and holds the process's action for SIGTRAP while that leads to
// ktrace's handler. Whenever ktrace is killed, the target can run on with it, and be restored from it.
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

/// The means to act in a process: its memory, and a stopped task that makes system calls.
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
    /// How many seccomp filters the task had that made the page. Nothing: an older ktrace made it, which did not note
    /// that.
    std::optional<std::uint64_t> filters() const {
        return header_.filters != 0 ? std::optional(header_.filters - 1) : std::nullopt;
    }
    /// The page is there as it was written: the program has neither unmapped it nor mapped something else over it.
    bool is_there(target::AddressSpace &space) const;
    /// As of the last look at the maps (forget_lost): no code of ktrace's can be run there any more.
    bool is_lost() const { return lost_; }
    /// Forgets the page and tables that are not there any more. False: there was nothing to forget.
    bool forget_lost(const std::vector<os::Mapping> &maps, target::AddressSpace &space);
    /// How many more traps it can list.
    std::size_t room() const;

    /// Makes room for `entries` more; the first time it maps the page, and installs the handler where the process has
    /// none of its own. Errors: refused (mmap is forbidden), gone.
    Status ensure(const Hands &hands, std::size_t entries);

    /// Adopts the page that another ktrace has left, to take it out.
    static Page adopt(VirtAddr address, const ktrace_recovery_header &header);

    /// Written by a ktrace of this build, as far as its handler and layout show.
    static bool is_of_this_build(target::AddressSpace &space, VirtAddr address, const ktrace_recovery_header &header);

    /// Lists a trap that is to be planted. False: there is no room, or the memory cannot be written.
    bool add(target::AddressSpace &space, const ktrace_recovery_entry &entry);
    /// Lists a mapping with slots.
    void add_arena(target::AddressSpace &space, VirtAddr start, std::uint64_t size);

    /// Lists a table of jumps, which is zeros. False: there are as many as can be listed, or there is no page.
    bool add_jump_table(target::AddressSpace &space, VirtAddr start, std::uint64_t capacity);

    /// Set to a task's stack pointer before it gets another signal in the place of a trap's; to VirtAddr{} when that is
    /// done. Nothing is written where the program has mapped something over the page, nor where the page's last ktrace
    /// was killed in between: that task may still be in the handler.
    void retell(target::AddressSpace &space, VirtAddr sp);

    /// Before a task's signals are blocked for a step: notes its own mask, for the handler. `tid`: its number in its
    /// own pid namespace.
    void keep_mask(target::AddressSpace &space, std::uint64_t tid, std::uint64_t mask);

    /// The program has set its action for SIGTRAP, and gets that one back from now on. Where that is no handler,
    /// ktrace's has to be put in its place again (renew_action).
    void note_action(target::AddressSpace &space, const ktrace_recovery_action &set);
    /// The kernel has reset the process's action for SIGTRAP, as a trap in a task that blocks it does: puts the action
    /// back.
    Status renew_action(const Hands &hands);
    /// True where the kernel has reset the action. False: the program has set another one unseen, and gets that one
    /// back.
    Result<bool> was_reset(const Hands &hands);
    /// True where such a reset shows in SigCgt, and cannot be the program's own doing (SA_RESETHAND).
    bool shows_resets() const;
    /// Counts the times that the action may have changed or been put back.
    std::uint32_t changes() const { return changes_; }
    /// True where the process's action is one that such a reset would lose.
    bool has_action() const { return installed() || header_.before.handler != 0; }
    /// The handler is ktrace's: no other SIGTRAP is expected in this process.
    bool installed() const { return header_.installed == ktrace_recovery_ours; }
    bool ignored_before() const { return header_.before.handler == 1; }

    /// The handler is ktrace's, and the program ignores SIGTRAP: an exec resets the action to the default.
    bool stood_for_ignoring() const { return installed() && ignored_before(); }
    /// The stopped task has called exec: the program that begins ignores SIGTRAP, as it does untraced.
    Status ignore_after_exec(const Hands &hands) const;

    /// Gives the process of the stopped task the action back that it had. False: an action may lead into the page
    /// still, since the process has set another one meanwhile and may have kept ktrace's.
    Result<bool> restore_action(const Hands &hands) const;
    /// Unmaps the page and its tables. Every process's action was restored.
    Status unmap(const Hands &hands);

    /// The mappings of the page and of its tables: start and size.
    std::vector<std::pair<VirtAddr, std::uint64_t>> mappings() const;
    /// The page is zeros: the kernel has wiped it for a fork's child (MADV_WIPEONFORK), or it was just mapped again.
    bool is_wiped(const std::vector<os::Mapping> &maps, target::AddressSpace &space) const;
    /// A fork's child has the page as it was at the fork, or zeros: writes all of it as it is now.
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
    bool lost_ = false;              // something else is there; the process's action may still be ktrace's
    ktrace_recovery_action first_{}; // the process's action when the page was made
    ktrace_recovery_header header_{};
    std::array<ktrace_recovery_mask, ktrace_recovery_most_masks> masks_{};
    std::vector<Table> tables_;
};

} // namespace ktrace::recovery
