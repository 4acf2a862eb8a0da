#include "upgrade/upgrader.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "arming/install.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quiet_thread.h"
#include "engine/calls/consumers.h"
#include "engine/space/jump_memory.h"
#include "engine/transparent/points.h"
#include "os/proc/procfs.h"
#include "os/self/allocate.h"
#include "os/self/processors.h"
#include "recovery/remains.h"
#include "trace/agent_costs.h"
#include "tracees/held_others.h"
#include "tracees/seize.h"
#include "tracees/stop.h"
#include "upgrade/countable.h"
#include "upgrade/counts.h"

namespace ktrace::upgrade {

using engine::AddressSpaceState;
using engine::Jump;
using engine::Process;
using State = Jump::State;

namespace {

constexpr std::uint64_t step_ns = 1'000'000;
constexpr std::uint64_t hold_ns = 2'000'000; // threads at once: behind that nothing more is begun
constexpr std::uint64_t settles_ns = 30'000'000, child_settles_ns = 300'000'000;
constexpr std::size_t many_sites = 256;                    // which take a while
constexpr std::uint64_t retry_ns = 1'000'000'000;          // where no task can be stopped
constexpr std::size_t boundaries_at_once = 16;             // jumps
constexpr unsigned most_tries = 50;                        // to plant one whose hit is repeated
constexpr std::uint64_t returns_apart_ns = 50'000'000;     // plans for nothing but where calls return to
constexpr std::uint64_t come_backs_apart_ns = 100'000'000; // looks at where branches lead into jumps
constexpr unsigned most_plans = 8;                         // in a row for which a place was taken meanwhile

bool is_wanted(const AddressSpaceState &space, VirtAddr at, const engine::Site &site) {
    const bool is_jump = space.jumps && (space.jumps->is_on(at) || space.jumps->refused.contains(at));
    const bool is_for_agent = space.follows_calls && is_return_site(site);
    return site.armed && (is_for_agent || !site.attachments.empty()) && !is_jump && !why_not_countable(site);
}

std::vector<VirtAddr> wanted_sites(const AddressSpaceState &space) {
    std::vector<VirtAddr> wanted;
    for (const auto &[at, site] : space.sites)
        if (is_wanted(space, at, *site)) wanted.push_back(at);
    std::ranges::sort(wanted);
    return wanted;
}

bool is_hit(const engine::Site &site) {
    return std::ranges::any_of(site.attachments,
                               [](const engine::Attachment *each) { return each->on && each->counters->hits != 0; });
}

/// Of many sites those that were hit come first. True: some are left for later.
bool leave_for_later(const AddressSpaceState &space, std::vector<VirtAddr> &wanted) {
    if (wanted.size() < many_sites) return false;
    std::vector<VirtAddr> first;
    std::ranges::copy_if(wanted, std::back_inserter(first), [&](VirtAddr at) { return is_hit(*space.sites.at(at)); });
    if (first.empty() || first.size() == wanted.size()) return false;
    wanted = std::move(first);
    return true;
}

/// Why no jump can be had in a process; nullptr: nothing is known against it.
const char *why_none(const trace::Trace &trace, const Process &process) {
    const AddressSpaceState &space = *process.space;
    if (space.why_no_jumps) return space.why_no_jumps;
    if (trace.config.max_events) return "--max-events counts hits one by one";
    if (!process.target.syscall_instruction || !space.recovery.mapped() || space.recovery.is_lost())
        return "the process may not map memory";
    if (!space.recovery.installed()) return "the program has a handler of its own for SIGTRAP";
    return nullptr;
}

void refuse_all(AddressSpaceState &space, const std::vector<VirtAddr> &sites, const char *why) {
    for (VirtAddr at : sites) space.jumps->refused[at] = {{}, why};
}

std::vector<VirtAddr> boundaries_of(const Jump &jump) {
    std::vector<VirtAddr> all;
    for (const arch::Boundary &each : jump.window.inner)
        if (!each.stays) all.push_back(jump.at + each.offset);
    return all;
}

engine::InternalBreakpoint *boundary_at(const AddressSpaceState &space, VirtAddr at) {
    auto site = space.sites.find(at);
    if (site == space.sites.end()) return nullptr;
    for (engine::InternalBreakpoint *each : site->second->internal)
        if (each->purpose == &engine::jump_boundary) return each;
    return nullptr;
}

bool are_armed(AddressSpaceState &space, const std::vector<VirtAddr> &places) {
    return std::ranges::all_of(places, [&](VirtAddr at) {
        const engine::Site *site = space.site_at(at);
        const engine::InternalBreakpoint *boundary = boundary_at(space, at);
        return site && site->armed && boundary && boundary->on;
    });
}

/// While it lives, traps within windows are those of the jumps themselves.
class PlantingBoundaries {
  public:
    explicit PlantingBoundaries(engine::Jumps &jumps) : jumps_{jumps} { jumps_.plants_boundaries = true; }
    ~PlantingBoundaries() { jumps_.plants_boundaries = false; }
    PlantingBoundaries(const PlantingBoundaries &) = delete;

  private:
    engine::Jumps &jumps_;
};

} // namespace

Upgrader::Upgrader(trace::Trace &trace) : trace_{trace} { trace_.engine.processor_clock.compare(); }

Upgrader::~Upgrader() {
    if (synchronizing_.joinable()) synchronizing_.join();
}

/// A child that was just born may end soon, or call exec: jumps would cost more than they save. Those that were there
/// before are given a moment, too, which shows what is hit most.
bool Upgrader::is_settled(Pid pid) {
    std::erase_if(settled_, [&](const auto &each) { return !trace_.engine.processes.contains(each.first); });
    const std::uint64_t now = monotonic_ns();
    return now >= settled_.try_emplace(pid.value, now + child_settles_ns).first->second;
}

bool Upgrader::begin() {
    if (!has_begun_)
        for (const auto &[pid, process] : trace_.engine.processes) settled_[pid] = monotonic_ns() + settles_ns;
    has_begun_ = true;
    is_waiting_ = false;
    const bool looks = monotonic_ns() >= next_come_backs_ns_;
    if (looks) next_come_backs_ns_ = monotonic_ns() + come_backs_apart_ns;
    for (auto &[pid, process] : trace_.engine.processes) {
        AddressSpaceState &space = *process->space;
        if (looks && space.jumps) lift_where_come_back_to(space);
        const bool has_returns = space.follows_calls && space.new_returns != 0 && monotonic_ns() >= next_returns_ns_;
        if (process->silent || process->borrowed || !(space.has_new_probes || has_returns)) continue;
        if (!is_settled(Pid{pid})) {
            is_waiting_ = true;
            continue;
        }
        space.has_new_probes = false;
        space.new_returns = 0;
        next_returns_ns_ = monotonic_ns() + returns_apart_ns;
        clear_idle_boundaries(trace_, process->space);
        if (space.jumps) // the other one may be gone
            std::erase_if(space.jumps->refused, [](const auto &each) {
                return !each.second.words && each.second.why == arch::NoJump::other_site;
            });
        std::vector<VirtAddr> wanted = wanted_sites(space);
        if (wanted.empty()) continue;
        if (!space.jumps || space.jumps->at.empty()) space.has_new_probes = leave_for_later(space, wanted);
        take_counts(trace_); // other code may lie at a site by now, and gets a counter of its own
        if (!space.jumps) {
            space.jumps = std::make_shared<engine::Jumps>();
            trace_.engine.jumps.push_back(space.jumps);
        }
        if (const char *why = may_synchronize_ ? why_none(trace_, *process) : "membarrier(2) is refused") {
            refuse_all(space, wanted, why);
            continue;
        }
        auto maps = os::read_maps(Pid{pid});
        if (!maps) continue;
        process->target.maps = std::move(*maps);
        if (space.return_probes != 0 && !trace_.engine.agent_costs.is_known()) {
            trace_.engine.processor_clock.compare();
            trace_.engine.agent_costs = trace::measure_agent_costs(trace_.engine.processor_clock.ns_per_tick());
        }
        work_ = std::make_unique<Work>(Work{Pid{pid}, process->space, Planner(*process, std::move(wanted))});
        return true;
    }
    return false;
}

bool Upgrader::step() {
    if (!work_ && !begin()) return is_waiting_;
    auto process = trace_.engine.processes.find(work_->pid.value);
    if (process == trace_.engine.processes.end() || process->second->space != work_->space) {
        work_.reset(); // it has ended, or called exec
        return true;
    }
    if (work_->space->why_no_jumps)
        give_up(work_->space->why_no_jumps);
    else
        go_on(*process->second);
    if (work_ && work_->phase == Phase::done) work_.reset();
    return true;
}

/// Calls each(jump) for those that have not given way, for a while. True: it was called for all. Where it answers
/// false, the site stays a trap.
template <class F> bool Upgrader::for_some(F &&each) {
    const std::uint64_t end = monotonic_ns() + step_ns;
    const std::vector<Jump *> &jumps = work_->planner.jumps();
    for (; work_->next < jumps.size() && monotonic_ns() < end; work_->next++) {
        Jump &jump = *jumps[work_->next];
        if (jump.state != State::lifted && !each(jump)) jump.state = State::lifted;
    }
    if (work_->next < jumps.size()) return false;
    work_->next = 0;
    return true;
}

void Upgrader::go_on(Process &process) {
    AddressSpaceState &space = *work_->space;
    Planner &planner = work_->planner;
    switch (work_->phase) {
    case Phase::plan: {
        const std::uint64_t end = monotonic_ns() + step_ns;
        while (monotonic_ns() < end)
            if (!planner.plan_next()) {
                work_->phase = planner.jumps().empty() ? Phase::done : Phase::map;
                return;
            }
        return;
    }
    case Phase::map: map_all(process); return;
    case Phase::write:
        if (for_some([&](Jump &jump) { return write(jump); })) work_->phase = Phase::boundaries;
        return;
    case Phase::boundaries: {
        const std::size_t count = planner.jumps().size();
        const std::size_t end = std::min(count, work_->next + boundaries_at_once);
        plant_boundaries(process, end);
        work_->next = end;
        if (end < count) return;
        work_->come_backs.begin(space, planner.jumps());
        synchronize_then(Phase::first_wait);
        return;
    }
    case Phase::first_wait:
    case Phase::second_wait:
        if (!is_synchronized_ || !work_->come_backs.are_known(space)) return;
        synchronizing_.join();
        if (!may_synchronize_) return give_up("membarrier(2) is refused");
        work_->phase = work_->phase == Phase::first_wait ? Phase::tails : Phase::heads;
        take_counts(trace_); // the hits so far are of the probes that were on
        return;
    case Phase::tails:
        if (for_some([&](Jump &jump) {
                // It may have been switched off since it was planned, or another probe may have come beside it.
                return may_become(space, jump) && are_armed(space, boundaries_of(jump)) && is_worth_it(jump) &&
                       engine::plant_tail(space, jump);
            }))
            synchronize_then(Phase::second_wait);
        return;
    case Phase::heads:
        if (!for_some([&](Jump &jump) { return plant_head(jump); })) return;
        clear_idle_boundaries(trace_, work_->space); // of those that are not worth it: each may stop tasks all the time
        work_->phase = Phase::done;
        return;
    case Phase::done: return;
    }
}

void Upgrader::synchronize_then(Phase next) {
    work_->next = 0;
    work_->phase = next;
    is_synchronized_ = false;
    if (synchronizing_.joinable()) synchronizing_.join(); // of a process that has ended meanwhile
    synchronizing_ = start_quiet_thread([this] {
        may_synchronize_ = os::synchronize_processors();
        is_synchronized_ = true;
    });
}

void Upgrader::give_up(const char *why) {
    for (Jump *jump : work_->planner.jumps()) {
        engine::lift(*work_->space, std::span(&jump, 1));
        work_->space->jumps->refused[jump->at] = {{}, why};
        if (!jump->is_written) jump->stub = {}; // its memory is not there
    }
    clear_idle_boundaries(trace_, work_->space);
    work_->phase = Phase::done;
}

/// The memory that is needed and not there: counted once, since that takes a while.
void Upgrader::count_room(Process &process) {
    const AddressSpaceState &space = *work_->space;
    Room &room = work_->room.emplace();
    room.landings = work_->planner.landing_ranges();
    for (const Jump *jump : work_->planner.jumps()) {
        const target::LoadedModule *loaded = target::module_at(process.target.modules, jump->at);
        for (VirtAddr at : boundaries_of(*jump)) {
            if (boundary_at(space, at)) continue;
            room.traps++;
            if (loaded) room.slots[loaded->start]++;
        }
    }
}

void Upgrader::map_all(Process &process) {
    if (!work_->room) count_room(process);
    const bool is_mapped = std::ranges::all_of(work_->space->jumps->areas, &engine::JumpArea::is_mapped);
    if (is_mapped && work_->room->landings.empty() && work_->room->traps == 0) {
        work_->phase = Phase::write;
        return;
    }
    if (monotonic_ns() < work_->wait_ns) return;
    auto stopped = tracees::stop_one(trace_, process, tracees::Patience::none);
    if (!stopped && stopped.error().kind == Error::Kind::refused) { // a parent in vfork, a disk
        work_->wait_ns = monotonic_ns() + retry_ns;
        return;
    }
    const std::uint64_t since = monotonic_ns();
    Result<Mapped> mapped = fail(Error::Kind::gone, "the process has ended");
    if (stopped && is_underway()) {
        // Files are opened by numbers that the process's other threads must not see as taken.
        const tracees::HeldOthers others(trace_, work_->space, stopped->tid());
        if (is_underway()) mapped = map_with(process, *stopped);
    }
    if (stopped) tracees::release_one(trace_, std::move(*stopped));
    KT_LOG_INFO("jumps: threads were held for " + std::to_string((monotonic_ns() - since) / 1000) + " us");
    if (!mapped) KT_LOG_INFO("no jumps: " + mapped.error().message);
    if (!is_underway() || (!mapped && mapped.error().kind == Error::Kind::gone))
        work_->phase = Phase::done;
    else if (mapped && *mapped != Mapped::taken)
        work_->phase = *mapped == Mapped::all ? Phase::write : Phase::map;
    else if (mapped && ++map_tries_ < most_plans)
        plan_again();
    else
        give_up("the process may not map memory for it");
    if (work_->phase == Phase::write) map_tries_ = 0;
}

/// The program has mapped something where memory was planned.
void Upgrader::plan_again() {
    for (Jump *jump : work_->planner.jumps()) jump->state = State::lifted;
    work_->space->has_new_probes = true;
    work_->phase = Phase::done;
}

/// The process is still the one that was planned for: no exec has come in between.
bool Upgrader::is_underway() const {
    auto process = trace_.engine.processes.find(work_->pid.value);
    return process != trace_.engine.processes.end() && process->second->space == work_->space;
}

/// Maps memory for stubs, counters and landings, as much as there is time for.
Result<Upgrader::Mapped> Upgrader::map_areas(Process &process, os::Stopped &stopped, std::uint64_t end_ns) {
    AddressSpaceState &space = *work_->space;
    os::Waiter &waiter = trace_.engine.waiter;
    for (engine::JumpArea &area : space.jumps->areas) {
        if (area.is_mapped()) continue;
        if (monotonic_ns() > end_ns) return Mapped::some;
        auto code = engine::map_jump_code(space, process.target, waiter, stopped, area.start, area.code_size());
        if (!code) return tl::make_unexpected(code.error());
        if (!*code) return Mapped::taken;
        const auto name = std::as_bytes(std::span(recovery::counters_name, std::strlen(recovery::counters_name) + 1));
        if (!space.memory->write_own(area.start, name)) return fail(Error::Kind::refused, "memory cannot be written");
        auto file = engine::map_shared(space, process.target, waiter, stopped,
                                       {area.counters, engine::CounterBlock::size, area.start});
        if (!file) return tl::make_unexpected(file.error());
        if (!*file) return Mapped::taken;
        for (std::size_t row = 0; row < arch::counter_rows; row++)
            if (auto made =
                    os::allocate(*file, row * arch::counter_row_size, 2 * area.capacity * sizeof(std::uint64_t));
                !made)
                return tl::make_unexpected(made.error());
        if (!space.recovery.add_jump_table(*space.memory, area.records, area.capacity))
            return fail(Error::Kind::refused, "the recovery page has no room");
        if (area.has_agent())
            if (auto there = put_agent(process, stopped, area); !there || *there != Mapped::all) return there;
        area.block->file = std::move(*file); // from now on it may be used, by later plans, too
    }
    for (std::vector<Extent> &ranges = work_->room->landings; !ranges.empty(); ranges.pop_back()) {
        const Extent &range = ranges.back();
        if (monotonic_ns() > end_ns) return Mapped::some;
        if (space.slots.arenas().size() + 2 >= ktrace_recovery_most_arenas)
            return fail(Error::Kind::refused, "there are too many mappings");
        auto code = engine::map_jump_code(space, process.target, waiter, stopped, range.start,
                                          static_cast<std::size_t>(range.end - range.start));
        if (!code) return tl::make_unexpected(code.error());
        if (!*code) return Mapped::taken;
    }
    return Mapped::all;
}

/// Room for the traps at inner boundaries, so that no task is stopped for them.
Result<Upgrader::Mapped> Upgrader::make_room_for_traps(Process &process, os::Stopped &stopped, std::uint64_t end_ns) {
    AddressSpaceState &space = *work_->space;
    os::Waiter &waiter = trace_.engine.waiter;
    const std::size_t traps = work_->room->traps;
    if (!engine::recovery_has_room(space, traps))
        if (auto made = engine::prepare_recovery(space, process.target, waiter, stopped, traps); !made)
            return tl::make_unexpected(made.error());
    for (const auto &[start, count] : work_->room->slots) {
        const target::LoadedModule *loaded = target::module_at(process.target.modules, start);
        if (!loaded || space.slots.room(start) >= count) continue;
        if (monotonic_ns() > end_ns) return Mapped::some;
        auto arena = engine::map_arena(space, process.target, waiter, stopped, loaded->start, loaded->end, count);
        if (!arena) return tl::make_unexpected(arena.error());
    }
    return Mapped::all;
}

Result<Upgrader::Mapped> Upgrader::map_with(Process &process, os::Stopped &stopped) {
    const std::uint64_t end = monotonic_ns() + hold_ns;
    auto mapped = map_areas(process, stopped, end);
    if (!mapped || *mapped != Mapped::all) return mapped;
    return make_room_for_traps(process, stopped, end);
}

/// Of the jumps up to `end`.
void Upgrader::plant_boundaries(Process &process, std::size_t end) {
    AddressSpaceState &space = *work_->space;
    const PlantingBoundaries planting(*space.jumps);
    arming::InstallPlan plan;
    for (std::size_t i = work_->next; i < end; i++) {
        const Jump &jump = *work_->planner.jumps()[i];
        if (jump.state == State::lifted) continue;
        for (VirtAddr at : boundaries_of(jump)) {
            if (engine::InternalBreakpoint *known = boundary_at(space, at))
                static_cast<void>(engine::switch_on(space, *space.site_at(at), *known));
            else
                plan.add(engine::jump_boundary, at);
        }
    }
    if (plan.empty() || !arming::has_room(trace_, process, plan))
        return; // before the tails it is looked whether all are there
    if (auto installed = arming::install(trace_, process, std::move(plan), nullptr); !installed)
        KT_LOG_INFO("jumps: " + installed.error().message);
}

/// Behind first_wait.
bool Upgrader::is_worth_it(const Jump &jump) {
    AddressSpaceState &space = *work_->space;
    if (work_->come_backs.are_few(space, jump)) return true;
    space.jumps->refused[jump.at] = {{}, "the function often comes back into the jump"};
    return false;
}

void Upgrader::lift_where_come_back_to(AddressSpaceState &space) {
    const std::vector<Jump *> often = often_come_back_to(space);
    if (!often.empty()) engine::lift(space, often);
}

/// A task is in the handler of a signal that has come between a hit there and its instruction: the jump would count
/// that hit again.
bool Upgrader::is_hit_repeated(VirtAddr at) const {
    return std::ranges::any_of(trace_.engine.tasks, [at](const auto &task) { return task.second.repeat.at == at; });
}

bool Upgrader::plant_head(Jump &jump) {
    AddressSpaceState &space = *work_->space;
    const engine::Site *site = space.site_at(jump.at);
    const bool waits = is_hit_repeated(jump.at);
    if (waits && ++tries_[jump.at] < most_tries) space.has_new_probes = true;
    if (!site || !site->armed || why_not_countable(*site) || waits) {
        Jump *one = &jump;
        engine::lift(space, std::span(&one, 1));
        return true;
    }
    jump.credits = credits_of(*site);
    if (engine::plant_head(space, jump)) {
        count_come_backs_from_now(space, jump);
        if (jump.is_for(program::Moment::call) && !std::exchange(space.follows_calls, true))
            space.new_returns++; // those that are there already
        return true;
    }
    Jump *one = &jump;
    engine::lift(space, std::span(&one, 1));
    return true;
}

void clear_idle_boundaries(trace::Trace &trace, const std::shared_ptr<AddressSpaceState> &space) {
    auto arming = trace.installed.armings.find(space.get());
    if (arming == trace.installed.armings.end()) return;
    for (const auto &internal : arming->second.internal) {
        if (internal->purpose != &engine::jump_boundary || !internal->on) continue;
        engine::Site *site = space->site_at(internal->at);
        if (site && !(space->jumps && space->jumps->over(internal->at))) engine::switch_off(*space, *site, *internal);
    }
}

} // namespace ktrace::upgrade
