// Slots: small executable places near the traced code, where displaced instructions run.
//
// Invariants: (1) a slot belongs to one Site and does not change while the site is armed: threads share it, since all
// per-thread state is in registers; (2) a retired slot is handed out again only after every task was seen outside of
// it; (3) an arena is mapped readable and executable, never writable: it is written through /proc/PID/mem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "arch/host.h"
#include "base/addr.h"
#include "os/proc/procfs.h"

namespace ktrace::engine {

/// A range of slots that was mapped in the target.
struct Arena {
    VirtAddr start;
    std::size_t size = 0;
    std::size_t used = 0;  // bytes from the front that were handed out
    bool is_whole = false; // it is used as a whole for something else (jumps), and has no slots
    VirtAddr end() const { return start + static_cast<std::int64_t>(size); }
};

class Slots {
  public:
    /// A slot within the ISA's reach of `near`; nothing: an arena must be mapped first.
    std::optional<VirtAddr> take(VirtAddr near);
    /// How many can still be taken near there without another arena.
    std::size_t room(VirtAddr near) const;

    /// The slot's site has been disarmed at `moment` (a count of stops); it is free again when `release` says so.
    void retire(VirtAddr slot, std::uint64_t moment) { retired_.push_back({slot, moment}); }
    /// All tasks were seen outside of the slots since `moment`.
    void release(std::uint64_t moment);
    std::size_t retired() const { return retired_.size(); }

    bool contains(VirtAddr pc) const;
    /// The start of the slot that holds pc.
    std::optional<VirtAddr> slot_at(VirtAddr pc) const;

    void add(Arena arena) { arenas_.push_back(arena); }
    const std::vector<Arena> &arenas() const { return arenas_; }
    /// The memory of these is not ktrace's any more. Their slots must not be asked for again.
    void lose(const std::vector<Arena> &arenas);
    void clear();

  private:
    struct Retired {
        VirtAddr slot;
        std::uint64_t moment;
    };
    std::vector<Arena> arenas_;
    std::vector<VirtAddr> free_;
    std::deque<Retired> retired_;
};

/// Where `size` bytes can be mapped so that all of [low, high) is within reach (of a jump): in a hole of the maps,
/// below the code where possible, away from where the heap and the stack grow. Pure.
std::optional<VirtAddr> place_arena(const std::vector<os::Mapping> &maps, VirtAddr low, VirtAddr high, std::size_t size,
                                    std::uint64_t reach = arch::Host::reach);

} // namespace ktrace::engine
