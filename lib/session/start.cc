#include "session/start.h"

#include <algorithm>
#include <csignal>

#include <elf.h>
#include <link.h>

#include "base/log.h"
#include "base/text.h"
#include "session/downloads.h"
#include "session/follow.h"
#include "session/listing.h"
#include "session/names.h"
#include "session/plugins.h"
#include "session/rearm.h"
#include "session/refusals.h"
#include "session/seize.h"
#include "session/unload.h"
#include "trap/calls.h"

namespace ktrace::session {

using trap::Event;
using trap::Traced;

namespace {

/// What runs a program that is a script; empty: it is none, and has its arguments as they were given.
std::string interpreter_of(Pid pid, const std::string &program) {
    std::string first = os::read_file(os::process_folder(pid) + "/cmdline").value_or(program).c_str();
    return first == program ? std::string() : std::string(text::base_name(first));
}

/// What was looked for is mostly in what a script starts.
Error explained_by_script(Error error, Pid pid, const std::string &program) {
    std::string interpreter = error.kind == Error::Kind::not_found ? interpreter_of(pid, program) : "";
    if (interpreter.empty()) return error;
    if (!error.hint.empty()) error.hint += error.hint.ends_with('?') ? " " : "; ";
    error.hint += text::escape(text::base_name(program)) + " is a script, run by " + text::escape(interpreter) +
                  ": for what that starts name the module (MODULE:FUNCTION), and follow children with -f";
    return error;
}

/// A probe cannot be placed in a program that ktrace has started: the program does not run. Elsewhere tracing ends
/// there.
void give_up(State &state, Traced &traced, os::Stopped stopped, const Error &error) {
    Pid pid = traced.process.pid;
    const bool is_starting = pid == state.program && state.armings[traced.ground.get()].waits_for_loader;
    if (error.kind != Error::Kind::gone)
        state.voice.complain(is_starting ? explained_by_script(error, pid, state.config.program[0]) : error);
    if (is_starting) {
        state.trouble = 125;
        ::kill(pid.value, SIGKILL);
    } else {
        state.trouble = 1;
    }
    state.world.closing = true;
    auto found = state.world.tasks.find(stopped.tid().value);
    if (found != state.world.tasks.end())
        trap::continue_task(state.world, found->second, std::move(stopped));
    else
        std::move(stopped).resume(os::Resume::run);
}

/// A program that cannot be traced: one that ktrace was to start does not run, another one runs on without ktrace.
void leave_32_bit(State &state, Traced &traced, os::Stopped stopped) {
    Pid pid = traced.process.pid;
    std::string what = "process " + std::to_string(pid.value) + " (" + traced.process.comm + ") is a 32-bit program";
    if (pid == state.program && state.locations.empty()) {
        give_up(state, traced, std::move(stopped),
                {Error::Kind::refused, what, "ktrace traces 64-bit programs", {}, -1, 1});
        return;
    }
    tell_once(state, what + " now: it runs on untraced");
    state.armings.erase(traced.ground.get());
    let_go(state, pid, std::move(stopped));
}

/// True where another process runs in the same memory.
bool shares_ground(const State &state, const Traced &traced) {
    return std::any_of(state.world.processes.begin(), state.world.processes.end(), [&](const auto &entry) {
        return entry.second.get() != &traced && entry.second->ground == traced.ground;
    });
}

std::string attached_text(const State &state, const Traced &traced) {
    auto tasks = static_cast<std::size_t>(
        std::count_if(state.world.tasks.begin(), state.world.tasks.end(),
                      [&](const auto &entry) { return entry.second.pid == traced.process.pid; }));
    auto arming = state.armings.find(traced.ground.get());
    auto is_shown = [&](std::uint32_t number) { return !state.registry.at(number).set->hidden; };
    std::size_t locations = 0;
    if (arming != state.armings.end()) {
        for (const auto &location : arming->second.locations)
            locations += is_shown(state.locations[location->location]->probe) ? 1 : 0;
        for (const WaitingIfunc &ifunc : arming->second.ifuncs)
            locations += is_shown(ifunc.probe) && !ifunc.has_chosen ? 1 : 0;
    }
    std::size_t specs = state.registry.shown().size();
    auto plural = [](std::size_t n, const char *noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); };
    std::string text = "Attached " + plural(locations, "probe");
    if (locations != specs) text += " from " + plural(specs, "spec");
    return text + " to " + std::to_string(traced.process.pid.value) + " (" + text::escape(traced.process.comm) + "), " +
           plural(tasks, "thread");
}

void announce(State &state, const Traced &traced) {
    const Arming &arming = state.armings[traced.ground.get()];
    const bool is_empty = arming.locations.empty() && arming.ifuncs.empty();
    if (!is_empty || arming.told_to_wait) tell_attached(state, traced);
}

/// The probes that may have a place in one of these modules.
std::vector<std::uint32_t> probes_for(const State &state, const std::vector<target::LoadedModule> &modules) {
    std::vector<std::uint32_t> numbers = state.registry.present();
    std::erase_if(numbers, [&](std::uint32_t number) {
        const probe::Spec &spec = state.registry.at(number).probe.spec;
        return std::none_of(modules.begin(), modules.end(), [&](const target::LoadedModule &loaded) {
            return spec.module.empty() || probe::names_module(spec.module, *loaded.module);
        });
    });
    return numbers;
}

Status arm_probes(State &state, Traced &traced, const std::vector<std::uint32_t> &probes, Missing missing,
                  os::Stopped &stopped) {
    auto plan = plan_arming(state, traced, probes, missing);
    if (!plan) return tl::make_unexpected(plan.error());
    if (plan->empty()) return {};
    return carry_out(state, traced, std::move(*plan), &stopped);
}

/// The program and its libraries are mapped: everything is armed.
Status arm_all(State &state, Traced &traced, os::Stopped &stopped) {
    if (auto refreshed = refresh_modules(state, traced); !refreshed) return fail(refreshed.error());
    Status armed = arm_probes(state, traced, state.registry.present(), Missing::refuse, stopped);
    tell_places(state);
    return armed;
}

/// What was loaded since the last look is armed, what is gone is forgotten.
Status arm_loaded(State &state, Traced &traced, os::Stopped &stopped) {
    auto loaded = refresh_modules(state, traced);
    if (!loaded) return fail(loaded.error());
    Status armed = arm_probes(state, traced, probes_for(state, *loaded), Missing::wait, stopped);
    tell_places(state);
    return armed;
}

/// Everything is mapped for the first time: all is armed, the plugins are started, and it is told. Where plugins are
/// started with the last of several processes, nothing has been told of the others.
Status complete_arming(State &state, Traced &traced, os::Stopped &stopped) {
    Arming &arming = state.armings[traced.ground.get()];
    Status armed = arm_all(state, traced, stopped);
    if (!armed) return armed;
    arming.waits_for_loader = false;
    forbid_downloads();
    const bool first = !state.plugins && !state.config.plugins.empty(), complete = !anyone_waits_for_loader(state);
    if (complete) armed = start_plugins(state, traced, &stopped);
    if (!armed)
        arming.waits_for_loader = true;
    else if (!first)
        announce(state, traced);
    else if (complete)
        announce_all(state);
    return armed;
}

} // namespace

namespace {

/// What its loader tells; nothing: it has none that does.
std::optional<r_debug> read_debug(Traced &traced) {
    auto base = os::read_auxv(traced.process.pid, AT_BASE);
    const target::LoadedModule *loader = base ? target::module_at(traced.process.modules, VirtAddr{*base}) : nullptr;
    if (!loader) return std::nullopt;
    auto symbols = loader->module->named("_r_debug");
    if (symbols.empty()) return std::nullopt;
    return traced.ground->space->read_value<r_debug>(VirtAddr{symbols.front()->vaddr + loader->bias});
}

} // namespace

bool modules_complete(Traced &traced) {
    const auto debug = read_debug(traced);
    // Its place for breakpoints is filled in when it is set up.
    return !debug || (debug->r_state == r_debug::RT_CONSISTENT && debug->r_brk != 0);
}

bool is_unloading(Traced &traced) {
    const auto debug = read_debug(traced);
    return debug && debug->r_state == r_debug::RT_DELETE;
}

bool anyone_unloads(const State &state) {
    return std::any_of(state.armings.begin(), state.armings.end(),
                       [](const auto &entry) { return entry.second.unloads; });
}

bool anyone_waits_for_loader(const State &state) {
    return std::any_of(state.armings.begin(), state.armings.end(),
                       [](const auto &entry) { return entry.second.waits_for_loader; });
}

void tell_attached(State &state, const Traced &traced) {
    if (state.config.quiet) return;
    state.voice.notice(attached_text(state, traced));
    if (state.config.verbose == 0) return;
    for (const std::string &line : armed_lines(state, traced)) state.voice.notice(line);
}

void announce_all(State &state) {
    for (const auto &[pid, traced] : state.world.processes)
        if (!traced->silent) tell_attached(state, *traced);
}

void begin_time(State &state) {
    if (state.time_has_begun || anyone_waits_for_loader(state)) return;
    state.time_has_begun = true;
    if (state.config.duration_ns) state.interrupts->start_timer(*state.config.duration_ns);
}

namespace {

/// The new program ignores SIGTRAP where the old one did.
void keep_ignored(State &state, const Traced &traced, os::Stopped &stopped) {
    if (!traced.ground->rescue.stood_for_ignoring() || is_32_bit(traced.process.pid)) return;
    target::Process process;
    process.pid = traced.process.pid;
    auto space = target::AddressSpace::open(process.pid);
    auto maps = os::read_maps(process.pid);
    if (!space || !maps) return;
    process.space = std::move(*space);
    process.maps = std::move(*maps);
    auto instruction = target::find_syscall_instruction(process);
    if (!instruction) return;
    auto kept = traced.ground->rescue.ignore_after_exec({*process.space, *instruction, state.world.waiter, stopped});
    if (!kept) log::write("session", log::Level::debug, "SIGTRAP is not ignored any more: " + kept.error().message);
}

} // namespace

void on_exec(State &state, Event event) {
    os::Stopped stopped = std::move(*event.stopped);
    Pid pid = event.pid;
    auto found = state.world.processes.find(pid.value);
    if (found == state.world.processes.end()) {
        std::move(stopped).resume(os::Resume::run);
        return;
    }
    Traced &traced = *found->second;
    // The thread that called exec goes on under the leader's id.
    for (Tid tid : {event.other, event.tid}) {
        auto task = state.world.tasks.find(tid.value);
        if (task == state.world.tasks.end()) continue;
        trap::end_calls(state.world, traced, task->second);
        state.world.tasks.erase(task);
        if (tid != stopped.tid()) state.world.waiter.forget(tid);
    }
    if (!traced.borrowed && !shares_ground(state, traced)) {
        trap::end_all(state.world, traced);
        state.armings.erase(traced.ground.get());
    }
    keep_ignored(state, traced, stopped);
    leave_ledger(state, pid); // what it had is gone with its memory
    if (traced.silent || state.world.closing) {
        let_go(state, pid, std::move(stopped));
        return;
    }
    trap::Task &task = state.world.tasks[stopped.tid().value];
    task.tid = stopped.tid();
    task.pid = pid;
    traced.borrowed = false;
    traced.process.comm = os::read_comm(pid, task.tid);
    part_with_modules(state, traced);
    traced.process.modules.clear();
    traced.process.syscall_instruction.reset();
    auto space = target::AddressSpace::open(pid);
    if (!space) {
        give_up(state, traced, std::move(stopped), space.error());
        return;
    }
    traced.process.space = std::move(*space);
    traced.ground = std::make_shared<trap::Ground>();
    traced.ground->space = traced.process.space;
    Arming &arming = state.armings[traced.ground.get()];
    arming.waits_for_loader = true;
    if (is_32_bit(pid)) {
        leave_32_bit(state, traced, std::move(stopped));
        return;
    }
    std::vector<std::string> unreadable;
    Status armed = target::refresh(traced.process, state.modules, unreadable);
    auto loader = os::read_auxv(pid, AT_BASE);
    if (armed && loader && *loader != 0) {
        armed = watch_loader(state, traced, &stopped);
    } else if (armed) {
        armed = complete_arming(state, traced, stopped);
    }
    if (!armed) {
        give_up(state, traced, std::move(stopped), armed.error());
        return;
    }
    trap::continue_task(state.world, task, std::move(stopped));
}

void on_loader(State &state, Event event) {
    os::Stopped stopped = std::move(*event.stopped);
    auto found = state.world.tasks.find(event.tid.value);
    Traced *traced = found == state.world.tasks.end() ? nullptr : state.world.process_of(found->second);
    if (!traced) {
        std::move(stopped).resume(os::Resume::run);
        return;
    }
    VirtAddr at = arch::Host::trap_address(stopped.pc());
    Arming &arming = state.armings[traced->ground.get()];
    arming.unloads = is_unloading(*traced);
    if (modules_complete(*traced)) {
        bool first = arming.waits_for_loader;
        Status armed = first ? complete_arming(state, *traced, stopped) : arm_loaded(state, *traced, stopped);
        if (!armed && first) {
            stopped.set_pc(at);
            give_up(state, *traced, std::move(stopped), armed.error());
            return;
        }
        if (!armed) tell_once(state, armed.error().message);
    }
    trap::finish_hit(state.world, *traced, found->second, *traced->ground->site_at(at), std::move(stopped));
    if (auto process = state.world.processes.find(event.pid.value); process != state.world.processes.end())
        if (auto set = set_all_watches(state, *process->second); !set) tell_once(state, set.error().message);
}

} // namespace ktrace::session
