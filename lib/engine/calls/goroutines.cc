#include "engine/calls/goroutines.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/calls/calls.h"

namespace ktrace::engine {

using arch::Host;

namespace {

constexpr std::size_t most_restarts = 4096; // under way: goroutines between the jump and the first instruction

constexpr std::int64_t far_away = std::numeric_limits<std::int64_t>::min(); // sets a bit that no program's address has

bool is_far_away(VirtAddr at) { return static_cast<std::int64_t>(at.value) < 0; }

/// The bounds of a goroutine's stack, with which its `struct g` begins (runtime2.go); nothing: it has none.
std::optional<StackMove> stack_of(Process &process, VirtAddr goroutine) {
    target::AddressSpace &space = *process.space->memory;
    auto low = space.read_value<std::uint64_t>(goroutine);
    auto high = space.read_value<std::uint64_t>(goroutine + 8);
    if (!low || !high || *low == 0 || *low >= *high || is_far_away(VirtAddr{*high})) return std::nullopt;
    return StackMove{goroutine, VirtAddr{*low}, VirtAddr{*high}};
}

/// Ends the calls whose frames are in [low, high): the memory is a new stack.
void make_way(Engine &engine, Process &process, VirtAddr low, VirtAddr high) {
    std::erase_if(process.space->restarts, [&](const Restart &each) { return low <= each.sp && each.sp < high; });
    for (Instance *stale : process.space->returns.within(low, high)) end_unreturned(engine, process, *stale);
}

/// A stack that has become smaller arrives with its upper part: no other stack's memory is in the way then.
void move_calls(Process &process, VirtAddr low, VirtAddr high, std::int64_t by) {
    process.space->returns.shift(low, high, by);
    for (Restart &each : process.space->restarts)
        if (low <= each.sp && each.sp < high) each.sp = each.sp + by;
}

} // namespace

bool is_moving(const Instance &call) { return is_far_away(call.frame.sp); }

namespace {

void leave_stack(Engine &engine, Process &process, Task &task, Site & /*site*/, os::Stopped &stopped) {
    task.calls.stack_move = stack_of(process, VirtAddr{Host::go_argument(stopped.registers())});
    if (!task.calls.stack_move) return;
    const VirtAddr low = task.calls.stack_move->low, high = task.calls.stack_move->high;
    make_way(engine, process, low + far_away, high + far_away);
    move_calls(process, low, high, far_away);
}

void arrive_on_stack(Engine &engine, Process &process, Task &task, Site & /*site*/, os::Stopped & /*stopped*/) {
    if (!task.calls.stack_move) return;
    StackMove from = *std::exchange(task.calls.stack_move, std::nullopt);
    auto to = stack_of(process, from.goroutine);
    if (!to) return;
    make_way(engine, process, to->low, to->high);
    move_calls(process, from.low + far_away, from.high + far_away, to->high - (from.high + far_away));
}

void note_restart(Engine & /*engine*/, Process &process, Task & /*task*/, Site &site, os::Stopped &stopped) {
    std::vector<Restart> &restarts = process.space->restarts;
    if (restarts.size() == most_restarts) restarts.erase(restarts.begin());
    restarts.push_back({*site.plan.target, stopped.sp()});
}

} // namespace

const InternalPurpose leaves_stack{.at_hit = leave_stack, .serves_returns = true};
const InternalPurpose arrives_on_stack{.at_hit = arrive_on_stack, .serves_returns = true};
const InternalPurpose starts_over{.at_hit = note_restart};

const Restart *find_restart(const AddressSpaceState &space, VirtAddr function, VirtAddr sp) {
    auto found = std::ranges::find_if(space.restarts,
                                      [&](const Restart &each) { return each.function == function && each.sp == sp; });
    return found == space.restarts.end() ? nullptr : &*found;
}

bool take_restart(AddressSpaceState &space, VirtAddr function, VirtAddr sp) {
    const Restart *found = find_restart(space, function, sp);
    if (found) space.restarts.erase(space.restarts.begin() + (found - space.restarts.data()));
    return found != nullptr;
}

} // namespace ktrace::engine
