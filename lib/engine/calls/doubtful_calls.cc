#include "engine/calls/doubtful_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/calls/caller.h"
#include "engine/calls/calls.h"
#include "engine/calls/consumers.h"
#include "target/modules.h"

namespace ktrace::engine {

using arch::Host;

namespace {

bool is_longjmp(const Process &process, const Site &unwinder) {
    const target::LoadedModule *loaded = target::module_at(process.target.modules, unwinder.at);
    const symbols::Symbol *symbol = loaded ? loaded->module->covering(unwinder.at.value - loaded->bias) : nullptr;
    return symbol && symbol->name.find("longjmp") != symbol->name.npos;
}

/// A longjmp leads to a frame with this stack pointer: the calls that were made with it are left.
void end_calls_where_it_leads(Engine &engine, Process &process, os::Stopped &stopped) {
    const auto sp = Host::longjmp_sp(stopped.registers(), *process.space->memory);
    if (!sp) return;
    while (Instance *call = process.space->returns.at(*sp - Host::return_pop)) end_unreturned(engine, process, *call);
}

/// Where the call instruction cannot be trapped, the call stays as it is: the next return there is taken for its own.
void doubt(Engine &engine, Process &process, Instance &call, os::Stopped &stopped) {
    if (std::exchange(call.may_be_left, true)) return;
    AddressSpaceState &space = *process.space;
    const VirtAddr back = call.frame.return_address;
    if (!is_doubtful(call, direct_target(space, back))) return;
    const VirtAddr at = call_instruction(process, back);
    Site *site = at ? trap_caller(engine, process, at, stopped) : nullptr;
    if (!site) return;
    give_way(space, at);
    site->doubtful++;
    call.doubtful_at = site;
}

/// The mapping that a stack lies in. It may hold other stacks, too: calls there become doubtful needlessly.
std::optional<os::Mapping> mapping_of(Process &process, VirtAddr sp) {
    auto find = [&]() -> std::optional<os::Mapping> {
        const auto &maps = process.target.maps;
        auto found = std::find_if(maps.begin(), maps.end(), [sp](const os::Mapping &m) { return m.contains(sp); });
        return found == maps.end() ? std::nullopt : std::optional(*found);
    };
    if (auto found = find()) return found;
    auto maps = os::read_maps(process.target.pid);
    if (!maps) return std::nullopt;
    process.target.maps = std::move(*maps);
    return find();
}

/// Calls that other tasks have begun: fibers and goroutines may go on in any task.
void doubt_calls_of_others(Engine &engine, Process &process, const Task &task, os::Stopped &stopped) {
    std::optional<os::Mapping> stack; // looked up for the first of them
    for (auto &[tid, other] : engine.tasks) {
        const Process *owner = engine.process_of(other);
        if (&other == &task || !other.calls.youngest || !owner || owner->space != process.space) continue;
        for (Instance *call = other.calls.youngest; call && !call->with_older; call = call->older_call) {
            if (!stack) stack = mapping_of(process, stopped.sp());
            if (!stack) return;
            if (stack->contains(call->frame.sp)) doubt(engine, process, *call, stopped);
        }
    }
}

} // namespace

bool is_doubtful(const Instance &call, VirtAddr direct_target) {
    if (!call.return_site) return false; // it ends at its own function's return instructions
    // A direct call returns from that function alone, and the probe sees the function called again.
    return direct_target != call.site->at || !call.attachment->on;
}

void doubt_calls(Engine &engine, Process &process, Task &task, const Site &unwinder, os::Stopped &stopped) {
    if (is_longjmp(process, unwinder)) end_calls_where_it_leads(engine, process, stopped);
    for (Instance *call = task.calls.youngest; call && !call->with_older; call = call->older_call) {
        doubt(engine, process, *call, stopped);
        call->with_older = true;
    }
    if (process.had_threads) doubt_calls_of_others(engine, process, task, stopped);
}

void end_left_calls(Engine &engine, Process &process, const Site &site, os::Stopped &stopped) {
    const VirtAddr frame_sp = stopped.sp() - Host::return_pop;
    const VirtAddr back = site.at + site.plan.length;
    Returns &returns = process.space->returns;
    while (Instance *call = returns.at(frame_sp)) {
        if (call->frame.return_address != back) break;
        end_unreturned(engine, process, *call);
    }
}

void forget_doubt(AddressSpaceState &space, Instance &call) {
    if (Site *site = std::exchange(call.doubtful_at, nullptr)) drop_doubt(space, *site);
}

} // namespace ktrace::engine
