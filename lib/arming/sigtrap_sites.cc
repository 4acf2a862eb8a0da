#include "arming/sigtrap_sites.h"

#include <array>
#include <string_view>

#include "engine/space/scan.h"
#include "engine/transparent/sigtrap/disposition.h"

namespace ktrace::arming {

using arch::Host;
using target::LoadedModule;

namespace {

/// The C library's, which signal(3) calls, too, and that of Go's runtime, where it calls the kernel itself.
constexpr std::array set_action = {"sigaction", "runtime.rt_sigaction", "runtime.rt_sigaction.abi0"};

/// A library that holds them; in a program without a loader, the program does.
bool may_hold(const LoadedModule &loaded, bool has_loader) {
    const std::string_view name = loaded.module->name();
    return !has_loader || name.starts_with("libc.") || name.starts_with("libc-") || name.starts_with("libpthread") ||
           name.starts_with("ld-musl");
}

/// A place in the function that every call passes; preferably one that needs no slot, so that the probes work where no
/// slot can be had.
VirtAddr place_in(const Snapshot &now, const LoadedModule &loaded, std::uint64_t function) {
    const VirtAddr start{function + loaded.bias}, end{loaded.module->function_end(function) + loaded.bias};
    bool is_straight = true;
    auto found = engine::instructions(now.memory, start, end, [&](const Host::Plan &each) {
        const bool is_wanted = is_straight && each.method != arch::Method::refuse && !arch::takes_slot(each);
        is_straight = is_straight && each.flow == arch::Flow::next;
        return is_wanted;
    });
    return found.empty() ? start : found.front();
}

/// Calls visit(vaddr) for each function of the module that has one of the names.
template <class Names, class F> void for_functions(const LoadedModule &loaded, const Names &names, F &&visit) {
    for (const char *name : names)
        for (const symbols::Symbol *symbol : loaded.module->named(name))
            if (symbol->kind == symbols::Symbol::Kind::function && symbol->vaddr != 0) visit(symbol->vaddr);
}

} // namespace

void plan_sigtrap(const Snapshot &now, InstallPlan &plan) {
    if (plan.locations.empty()) return;
    for (const LoadedModule &loaded : now.modules) {
        if (!may_hold(loaded, now.has_loader)) continue;
        for_functions(loaded, set_action, [&](std::uint64_t function) {
            plan_internal(now, plan, engine::sets_action, place_in(now, loaded, function));
        });
    }
}

} // namespace ktrace::arming
