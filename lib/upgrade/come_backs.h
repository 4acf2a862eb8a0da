// ComeBacks: jumps into whose bytes a branch of the function leads. A thread that takes the branch stops at the trap of
// an inner boundary, and which of the two is hit more, the site or the boundary, only the running program shows: both
// are traps for a moment before the jump is planted, and their stops are compared.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/space/address_space_state.h"
#include "engine/space/jumps.h"

namespace ktrace::upgrade {

class ComeBacks {
  public:
    /// The traps at the boundaries of these jumps are there now, as those at their sites are: stops count from now on.
    void begin(engine::AddressSpaceState &space, const std::vector<engine::Jump *> &jumps);
    /// Enough has been seen, or there is nothing to see, or it takes too long.
    bool are_known(engine::AddressSpaceState &space) const;
    /// The jump saves more stops than there are at its boundaries.
    bool are_few(engine::AddressSpaceState &space, const engine::Jump &jump) const;

  private:
    struct Stops {
        std::uint64_t at_site = 0, at_boundaries = 0;
    };
    Stops since_begin(engine::AddressSpaceState &space, const engine::Jump &jump) const;

    std::map<const engine::Jump *, Stops> before_; // of those that may be come back to
    std::uint64_t end_ns_ = 0;
};

/// The jump is planted.
void count_come_backs_from_now(engine::AddressSpaceState &space, engine::Jump &jump);
/// The program's ways may change later. Gives the planted jumps whose boundaries had many stops since, twice as many
/// each time that one is given: they are to be lifted, and planned and looked at anew.
std::vector<engine::Jump *> often_come_back_to(engine::AddressSpaceState &space);

} // namespace ktrace::upgrade
