#include "arming/go_runtime.h"

#include <algorithm>
#include <utility>

#include "engine/calls/goroutines.h"
#include "engine/space/scan.h"

namespace ktrace::arming {

using arch::Host;
using target::LoadedModule;

namespace {

/// The function that moves a goroutine's stack: every program in Go has it.
const symbols::Symbol *stack_mover(const LoadedModule &loaded) {
    auto found = loaded.module->named("runtime.copystack");
    return found.empty() || found.front()->vaddr == 0 ? nullptr : found.front();
}

/// A function that finds its stack too small has the runtime make it larger, and then jumps to its first instruction:
/// the same call, seen once more.
void plan_restarts(const Snapshot &now, InstallPlan &plan, VirtAddr function, VirtAddr end) {
    auto jumps = engine::instructions(now.memory, function, end, [&](const Host::Plan &instruction) {
        return instruction.flow == arch::Flow::jump && instruction.target == function;
    });
    for (VirtAddr at : jumps) plan_internal(now, plan, engine::starts_over, at);
}

void plan_stack_moves(const Snapshot &now, InstallPlan &plan, const LoadedModule &loaded,
                      const symbols::Symbol &mover) {
    VirtAddr start{mover.vaddr + loaded.bias}, end{loaded.module->function_end(mover.vaddr) + loaded.bias};
    auto returns = engine::instructions(now.memory, start, end,
                                        [](const Host::Plan &each) { return each.flow == arch::Flow::ret; });
    if (returns.empty()) return;
    plan_internal(now, plan, engine::leaves_stack, start);
    for (VirtAddr at : returns) plan_internal(now, plan, engine::arrives_on_stack, at);
}

} // namespace

void plan_go(const Snapshot &now, InstallPlan &plan) {
    for (const LoadedModule &loaded : now.modules) {
        const symbols::Symbol *mover = nullptr; // looked for once there is a location
        bool looked = false, returns = false;
        for (const PlannedLocation &location : plan.locations) {
            const VirtAddr at = location.at();
            if (location.watch || at < loaded.start || at >= loaded.end) continue;
            if (!std::exchange(looked, true)) mover = stack_mover(loaded);
            if (!mover) break;
            returns = returns || location.kind == probe::Kind::ret;
            auto function = loaded.module->function_at(at.value - loaded.bias);
            if (function && VirtAddr{function->start + loaded.bias} == at)
                plan_restarts(now, plan, at, VirtAddr{function->end + loaded.bias});
        }
        if (mover && returns) plan_stack_moves(now, plan, loaded, *mover);
    }
}

} // namespace ktrace::arming
