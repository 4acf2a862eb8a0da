#include "session/go.h"

#include <algorithm>
#include <utility>

#include "trap/scan.h"

namespace ktrace::session {

using arch::Host;
using target::LoadedModule;
using trap::Armed;
using trap::Traced;

namespace {

/// The function that moves a goroutine's stack: every program of Go's has it.
const symbols::Symbol *stack_mover(const LoadedModule &loaded) {
    auto found = loaded.module->named("runtime.copystack");
    return found.empty() || found.front()->vaddr == 0 ? nullptr : found.front();
}

/// A function that finds its stack too small has the runtime make it larger, and then jumps to its first instruction:
/// the same call, seen once more.
void plan_restarts(const Traced &traced, ArmPlan &plan, VirtAddr function, VirtAddr end) {
    auto jumps = trap::instructions(*traced.ground->space, function, end, [&](const Host::Plan &instruction) {
        return instruction.flow == arch::Flow::jump && instruction.target == function;
    });
    for (VirtAddr at : jumps) plan_once(traced, plan, Armed::Kind::restarts, at);
}

void plan_stack_moves(const Traced &traced, ArmPlan &plan, const LoadedModule &loaded, const symbols::Symbol &mover) {
    VirtAddr start{mover.vaddr + loaded.bias}, end{loaded.module->function_end(mover.vaddr) + loaded.bias};
    auto returns = trap::instructions(*traced.ground->space, start, end,
                                      [](const Host::Plan &each) { return each.flow == arch::Flow::ret; });
    if (returns.empty()) return;
    plan_once(traced, plan, Armed::Kind::stack_leaves, start);
    for (VirtAddr at : returns) plan_once(traced, plan, Armed::Kind::stack_arrives, at);
}

} // namespace

void plan_go(const Traced &traced, ArmPlan &plan) {
    for (const LoadedModule &loaded : traced.process.modules) {
        const symbols::Symbol *mover = nullptr; // looked for once there is a location
        bool looked = false, returns = false;
        for (const auto &location : plan.locations) {
            if (location->watch || location->at < loaded.start || location->at >= loaded.end) continue;
            if (!std::exchange(looked, true)) mover = stack_mover(loaded);
            if (!mover) break;
            returns = returns || location->armed.kind == Armed::Kind::ret;
            auto function = loaded.module->function_at(location->at.value - loaded.bias);
            if (function && VirtAddr{function->start + loaded.bias} == location->at)
                plan_restarts(traced, plan, location->at, VirtAddr{function->end + loaded.bias});
        }
        if (mover && returns) plan_stack_moves(traced, plan, loaded, *mover);
    }
}

} // namespace ktrace::session
