// Upgrader: sites that were armed by traps get jumps, a little at a time, while the loop serves stops.
//
// The order, for the sites of one address space together, those first that are hit: plan; stop the tasks that run and
// map memory, for some milliseconds at once, as often as it takes; write landings and stubs; traps at inner boundaries;
// synchronize; tails; synchronize; heads (engine/space/jumps.h). A site that changes meanwhile gives way, and stays a
// trap.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "trace/trace.h"
#include "upgrade/come_backs.h"
#include "upgrade/planner.h"

namespace ktrace::upgrade {

/// Memory that jumps need and the process has not mapped yet.
struct Room {
    std::vector<Extent> landings;          // that are to be mapped
    std::map<VirtAddr, std::size_t> slots; // at inner boundaries, by module
    std::size_t traps = 0;                 // the sum
};

class Upgrader {
  public:
    explicit Upgrader(trace::Trace &trace);
    ~Upgrader();
    Upgrader(const Upgrader &) = delete;

    /// Does a part of what there is to do, some milliseconds. True: there is more, though perhaps not at once.
    bool step();

  private:
    enum class Phase : std::uint8_t { plan, map, write, boundaries, first_wait, tails, second_wait, heads, done };
    struct Work {
        Pid pid;
        std::shared_ptr<engine::AddressSpaceState> space;
        Planner planner;
        Phase phase = Phase::plan;
        std::size_t next = 0;                    // of the planner's jumps
        std::uint64_t wait_ns = 0;               // until then no task can be stopped
        std::optional<Room> room = std::nullopt; // nothing: it was not counted yet
        ComeBacks come_backs = {};
    };

    bool is_settled(Pid pid);
    bool begin();
    void go_on(engine::Process &process);
    void map_all(engine::Process &process);
    enum class Mapped : std::uint8_t { all, some, taken }; // taken: something else is there
    Result<Mapped> map_with(engine::Process &process, os::Stopped &stopped);
    Result<Mapped> map_areas(engine::Process &process, os::Stopped &stopped, std::uint64_t end_ns);
    Result<Mapped> put_agent(engine::Process &process, os::Stopped &stopped, const engine::JumpArea &area);
    Result<Mapped> make_room_for_traps(engine::Process &process, os::Stopped &stopped, std::uint64_t end_ns);
    void plan_again();
    bool is_underway() const;
    void count_room(engine::Process &process);
    bool write_runs(const engine::Jump &jump, const engine::JumpArea &area);
    bool write_run(const engine::Jump &jump, std::size_t index, const engine::JumpArea &area);
    bool write(engine::Jump &jump);
    void plant_boundaries(engine::Process &process, std::size_t end);
    bool is_worth_it(const engine::Jump &jump);
    void lift_where_come_back_to(engine::AddressSpaceState &space);
    bool is_hit_repeated(VirtAddr at) const;
    bool plant_head(engine::Jump &jump);
    template <class F> bool for_some(F &&each);
    void synchronize_then(Phase next);
    void give_up(const char *why);

    trace::Trace &trace_;
    std::unique_ptr<Work> work_;
    std::map<VirtAddr, unsigned> tries_;
    std::map<pid_t, std::uint64_t> settled_; // of processes: from when on
    bool has_begun_ = false, is_waiting_ = false;
    unsigned map_tries_ = 0; // in a row
    std::uint64_t next_returns_ns_ = 0, next_come_backs_ns_ = 0;
    std::thread synchronizing_;
    std::atomic<bool> is_synchronized_ = false, may_synchronize_ = true;
};

/// Switches off the boundaries of jumps that were lifted. Between stops.
void clear_idle_boundaries(trace::Trace &trace, const std::shared_ptr<engine::AddressSpaceState> &space);

} // namespace ktrace::upgrade
