#include "arming/sigtrap_sites.h"

#include <array>
#include <string_view>

#include <elf.h>

#include "arming/install.h"
#include "base/log.h"
#include "engine/space/scan.h"
#include "engine/transparent/sigtrap/disposition.h"

namespace ktrace::arming {

using arch::Host;
using engine::Process;
using target::LoadedModule;

namespace {

/// The C library's, which signal(3) calls too, and that of Go's runtime, where that calls the kernel itself.
constexpr std::array set_action = {"sigaction", "runtime.rt_sigaction", "runtime.rt_sigaction.abi0"};

/// sigprocmask, siglongjmp and thrd_create call this one; before glibc 2.32 sigprocmask made a system call of its own.
constexpr std::array set_mask = {"pthread_sigmask", "sigprocmask"};

/// A library that holds them; in a program without a loader, the program does.
bool may_hold(const LoadedModule &loaded, bool has_loader) {
    const std::string_view name = loaded.module->name();
    return !has_loader || name.starts_with("libc.") || name.starts_with("libc-") || name.starts_with("libpthread") ||
           name.starts_with("ld-musl");
}

/// A place in the function that every call comes by; with luck one that needs no slot, for where none can be had the
/// probes are to be had still.
VirtAddr place_in(const Process &process, const LoadedModule &loaded, std::uint64_t function) {
    const VirtAddr start{function + loaded.bias}, end{loaded.module->function_end(function) + loaded.bias};
    bool is_straight = true;
    auto found = engine::instructions(*process.space->memory, start, end, [&](const Host::Plan &each) {
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

/// Does the function make a system call itself? One that leaves that to another one need not be watched.
bool calls_kernel(const Process &process, const LoadedModule &loaded, std::uint64_t function) {
    const VirtAddr start{function + loaded.bias}, end{loaded.module->function_end(function) + loaded.bias};
    return !engine::instructions(*process.space->memory, start, end, [](const Host::Plan &each) {
                return each.flow == arch::Flow::syscall;
            }).empty();
}

/// A stop in a function that nobody has asked to be probed may show: bash, which looks for signals a moment before it
/// reads, is more likely to miss one. So only a process that has a thread which blocks SIGTRAP, but not everything, is
/// watched for those that come to do so.
bool blocks_traps(Pid pid) {
    for (Tid tid : os::read_tasks(pid))
        if (auto status = os::read_status(tid.value); status && engine::blocks_traps_alone(status->blocked))
            return true;
    return false;
}

void plan_masks(const Process &process, ArmPlan &plan, bool has_loader) {
    for (const LoadedModule &loaded : process.target.modules) {
        if (!may_hold(loaded, has_loader)) continue;
        for_functions(loaded, set_mask, [&](std::uint64_t function) {
            if (calls_kernel(process, loaded, function))
                plan_once(process, plan, engine::sets_mask, VirtAddr{function + loaded.bias});
        });
    }
}

bool has_loader(const Process &process) { return os::read_auxv(process.target.pid, AT_BASE).value_or(0) != 0; }

} // namespace

void plan_sigtrap(const Process &process, ArmPlan &plan) {
    if (plan.locations.empty()) return;
    const bool is_dynamic = has_loader(process);
    for (const LoadedModule &loaded : process.target.modules) {
        if (!may_hold(loaded, is_dynamic)) continue;
        for_functions(loaded, set_action, [&](std::uint64_t function) {
            plan_once(process, plan, engine::sets_action, place_in(process, loaded, function));
        });
    }
    // The arguments are known at the first instruction of a function, which mostly needs a slot: a program without
    // shared libraries can be traced without any.
    if (is_dynamic && (process.space->resets.was_told || blocks_traps(process.target.pid)))
        plan_masks(process, plan, true);
}

void watch_masks(trace::Trace &trace, Process &process, os::Stopped &stopped) {
    if (trace::anyone_unloads(trace)) return;
    ArmPlan plan;
    plan_masks(process, plan, has_loader(process));
    auto armed = install(trace, process, std::move(plan), &stopped);
    if (!armed) log::write("trace", log::Level::debug, "masks are not seen: " + armed.error().message);
}

} // namespace ktrace::arming
