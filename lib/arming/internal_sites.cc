#include "arming/internal_sites.h"

#include <algorithm>
#include <array>

#include "engine/calls/unwinding.h"

namespace ktrace::arming {

namespace {

/// Functions whose call may make frames vanish without returning.
constexpr std::array unwinding_functions = {"_Unwind_RaiseException",
                                            "_Unwind_ForcedUnwind",
                                            "_Unwind_Resume_or_Rethrow",
                                            "__longjmp_chk",
                                            "longjmp",
                                            "_longjmp",
                                            "siglongjmp",
                                            "runtime.gopanic",  // Go: a panic begins on the goroutine's stack
                                            "runtime.recovery", // and ends at a deferred function, on the thread's
                                            "runtime.Goexit"};

/// After these a thread runs on another stack.
constexpr std::array switching_functions = {"swapcontext", "setcontext"};

} // namespace

const engine::InternalPurpose loads_modules{.raises = engine::EventKind::loader};
const engine::InternalPurpose resolves_ifunc{.raises = engine::EventKind::ifunc};

void plan_internal(const Snapshot &now, InstallPlan &plan, const engine::InternalPurpose &purpose, VirtAddr at) {
    auto sites = now.space.sites.find(at);
    const engine::Site *site = sites == now.space.sites.end() ? nullptr : sites->second.get();
    const bool is_there = site && std::any_of(site->internal.begin(), site->internal.end(),
                                              [&](const auto *breakpoint) { return breakpoint->purpose == &purpose; });
    const bool is_planned = std::any_of(plan.internal.begin(), plan.internal.end(), [&](const auto &breakpoint) {
        return breakpoint->at == at && breakpoint->purpose == &purpose;
    });
    if (!is_there && !is_planned) plan.add(purpose, at);
}

void plan_unwinding(const Snapshot &now, InstallPlan &plan) {
    for (const target::LoadedModule &loaded : now.modules) {
        if (now.installed.unwinders.contains(loaded.bias)) continue;
        plan.unwinders.push_back(loaded.bias);
        std::vector<const char *> names(unwinding_functions.begin(), unwinding_functions.end());
        names.insert(names.end(), switching_functions.begin(), switching_functions.end());
        for (const char *name : names)
            for (const symbols::Symbol *symbol : loaded.module->named(name))
                if (symbol->kind == symbols::Symbol::Kind::function && symbol->vaddr != 0)
                    plan_internal(now, plan, engine::unwinds, VirtAddr{symbol->vaddr + loaded.bias});
    }
}

} // namespace ktrace::arming
