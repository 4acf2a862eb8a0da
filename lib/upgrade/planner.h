// Planner: a jump for each site of one address space that may have one: its window, its landing, its stub, and the
// memory that these need.
//
// Invariants: the target is read, and nothing is written or mapped; no two parts of what is planned overlap.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/space/engine.h"
#include "engine/space/jumps.h"
#include "jump/landings.h"

namespace ktrace::upgrade {

/// A range of addresses.
struct Extent {
    VirtAddr start, end;
};

class Planner {
  public:
    /// `wanted`: addresses of sites, in order. The process's maps were read a moment ago.
    Planner(engine::Process &process, std::vector<VirtAddr> wanted);

    /// Plans the next site. False: all are planned.
    bool plan_next();

    /// Of the address space's Jumps, prepared, in order.
    const std::vector<engine::Jump *> &jumps() const { return jumps_; }
    /// The landings of these jumps lie in them, as few as may be.
    std::vector<Extent> landing_ranges() const;

  private:
    using Outcome = std::optional<engine::Refusal>; // nothing: it is planned
    Outcome plan(VirtAddr at);
    Outcome lay_out(engine::Jump &jump, std::span<const std::byte> code);
    tl::expected<arch::Window, arch::NoJump> window_of(VirtAddr at, const target::LoadedModule &loaded,
                                                       std::span<const std::byte> code);
    bool is_guarded(VirtAddr at, std::span<const std::byte> code);
    const std::vector<VirtAddr> &targets_of(const target::LoadedModule &loaded, symbols::Module::Extent function);
    std::optional<VirtAddr> take_landing(const arch::LandingRule &rule);
    void place(engine::AgentRun &run, engine::JumpArea &area);
    static bool has_room(const engine::JumpArea &area, const engine::Jump &jump);
    engine::JumpArea *area_for(const engine::Jump &jump);
    bool add_area(VirtAddr at);
    bool add_threads(VirtAddr at);
    void note_taken(VirtAddr start, VirtAddr end);

    engine::Process &process_;
    engine::AddressSpaceState &space_;
    std::vector<VirtAddr> wanted_, sites_;
    std::size_t next_ = 0;
    std::vector<os::Mapping> maps_; // with what is planned
    jump::Landings landings_;
    std::set<VirtAddr> landing_pages_;
    std::vector<engine::Jump *> jumps_;
    std::map<VirtAddr, std::vector<VirtAddr>> targets_; // by function
    std::map<const symbols::Module *, bool> is_go_;
    std::uint64_t images_size_ = 0;                    // bytes, of the programs that the agent is to run
    std::size_t more_runs_ = 0;                        // than sites
    bool needs_agent_ = false, follows_calls_ = false; // where calls begin, their returns follow
    bool has_shadow_stack_ = false;
    std::optional<std::vector<Extent>> guarded_; // DetourSite::is_guarded; nothing: not looked at yet
};

} // namespace ktrace::upgrade
