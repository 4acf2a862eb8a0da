#include "lifecycle/exec_and_loader.h"

#include <algorithm>
#include <csignal>

#include <elf.h>

#include "arming/install.h"
#include "arming/modules_changed.h"
#include "arming/planning.h"
#include "arming/registry.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "ctl/listing.h"
#include "engine/calls/calls.h"
#include "lifecycle/fork.h"
#include "report/symbolizer.h"
#include "target/loader.h"
#include "trace/downloads.h"
#include "tracees/access_errors.h"
#include "tracees/seize.h"

namespace ktrace::lifecycle {

using engine::Event;
using engine::Process;

namespace {

/// The interpreter of a program that is a script; empty: it is none, and has its arguments as they were given.
std::string interpreter_of(Pid pid, const std::string &program) {
    std::string first = os::read_file(os::process_folder(pid) + "/cmdline").value_or(program).c_str();
    return first == program ? std::string() : std::string(text::base_name(first));
}

/// Adds to an error that the program is a script: the SPEC mostly means a program that the script starts.
Error explained_by_script(Error error, Pid pid, const std::string &program) {
    std::string interpreter = error.kind == Error::Kind::not_found ? interpreter_of(pid, program) : "";
    if (interpreter.empty()) return error;
    if (!error.hint.empty()) error.hint += error.hint.ends_with('?') ? " " : "; ";
    error.hint += text::escape(text::base_name(program)) + " is a script, run by " + text::escape(interpreter) +
                  ": for what that starts name the module (MODULE:FUNCTION), and follow children with -f";
    return error;
}

/// A probe cannot be placed. A program that ktrace has started does not run; in others tracing ends here.
void give_up(trace::Trace &trace, Process &process, os::Stopped stopped, const Error &error) {
    Pid pid = process.target.pid;
    const bool is_starting = pid == trace.program.pid && trace.installed.armings[process.space.get()].waits_for_loader;
    if (error.kind != Error::Kind::gone)
        trace.voice.complain(is_starting ? explained_by_script(error, pid, trace.config.program[0]) : error);
    if (is_starting) {
        trace.trouble = 125;
        ::kill(pid.value, SIGKILL);
    } else {
        trace.trouble = 1;
    }
    trace.engine.closing = true;
    auto found = trace.engine.tasks.find(stopped.tid().value);
    if (found != trace.engine.tasks.end())
        engine::continue_task(trace.engine, found->second, std::move(stopped));
    else
        std::move(stopped).resume(os::Resume::run);
}

/// A program that cannot be traced. One that ktrace has started does not run; another one runs on without ktrace.
void leave_32_bit(trace::Trace &trace, Process &process, os::Stopped stopped) {
    Pid pid = process.target.pid;
    std::string what = "process " + std::to_string(pid.value) + " (" + process.target.comm + ") is a 32-bit program";
    if (pid == trace.program.pid && trace.installed.locations.empty()) {
        give_up(trace, process, std::move(stopped),
                {Error::Kind::refused, what, "ktrace traces 64-bit programs", {}, -1, 1});
        return;
    }
    trace::tell_once(trace, what + " now: it runs on untraced");
    trace.installed.armings.erase(process.space.get());
    let_go(trace, pid, std::move(stopped));
}

/// True where another process runs in the same memory.
bool shares_address_space(const trace::Trace &trace, const Process &process) {
    return std::any_of(trace.engine.processes.begin(), trace.engine.processes.end(), [&](const auto &entry) {
        return entry.second.get() != &process && entry.second->space == process.space;
    });
}

std::string attached_text(const trace::Trace &trace, const Process &process) {
    auto tasks = static_cast<std::size_t>(
        std::count_if(trace.engine.tasks.begin(), trace.engine.tasks.end(),
                      [&](const auto &entry) { return entry.second.pid == process.target.pid; }));
    auto arming = trace.installed.armings.find(process.space.get());
    auto is_shown = [&](std::uint32_t number) { return !trace.registry.at(number).set->hidden; };
    std::size_t locations = 0;
    if (arming != trace.installed.armings.end()) {
        for (const auto &location : arming->second.locations)
            locations += is_shown(trace.installed.locations[location->location]->probe) ? 1 : 0;
        for (const trace::WaitingIfunc &ifunc : arming->second.ifuncs)
            locations += is_shown(ifunc.probe) && !ifunc.has_chosen ? 1 : 0;
    }
    std::size_t specs = trace.registry.shown().size();
    auto plural = [](std::size_t n, const char *noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); };
    std::string text = "Attached " + plural(locations, "probe");
    if (locations != specs) text += " from " + plural(specs, "spec");
    return text + " to " + std::to_string(process.target.pid.value) + " (" + text::escape(process.target.comm) + "), " +
           plural(tasks, "thread");
}

void announce(trace::Trace &trace, const Process &process) {
    const trace::Arming &arming = trace.installed.armings[process.space.get()];
    const bool is_empty = arming.locations.empty() && arming.ifuncs.empty();
    if (!is_empty || arming.told_to_wait) tell_attached(trace, process);
}

/// The probes that may have a place in one of these modules.
std::vector<std::uint32_t> probes_for(const trace::Trace &trace, const std::vector<target::LoadedModule> &modules) {
    std::vector<std::uint32_t> numbers = trace.registry.present();
    std::erase_if(numbers, [&](std::uint32_t number) {
        const probe::Spec &spec = trace.registry.at(number).probe.spec;
        return std::none_of(modules.begin(), modules.end(), [&](const target::LoadedModule &loaded) {
            return spec.module.empty() || probe::names_module(spec.module, *loaded.module);
        });
    });
    return numbers;
}

Status plan_and_install(trace::Trace &trace, Process &process, const std::vector<std::uint32_t> &probes,
                        arming::Missing missing, os::Stopped &stopped) {
    auto plan = arming::make_plan(trace, process, probes, missing);
    if (!plan) return tl::make_unexpected(plan.error());
    if (plan->empty()) return {};
    return arming::install(trace, process, std::move(*plan), &stopped);
}

/// The program and its libraries are mapped: everything is armed.
Status install_first(trace::Trace &trace, Process &process, os::Stopped &stopped) {
    if (auto refreshed = arming::refresh_modules(trace, process); !refreshed) return fail(refreshed.error());
    Status armed = plan_and_install(trace, process, trace.registry.present(), arming::Missing::refuse, stopped);
    if (trace.plugins) trace.plugins->on_places_changed();
    return armed;
}

/// Arms libraries that were loaded since the last look, and forgets those that are gone.
Status install_loaded(trace::Trace &trace, Process &process, os::Stopped &stopped) {
    auto loaded = arming::refresh_modules(trace, process);
    if (!loaded) return fail(loaded.error());
    Status armed = plan_and_install(trace, process, probes_for(trace, *loaded), arming::Missing::wait, stopped);
    if (trace.plugins) trace.plugins->on_places_changed();
    return armed;
}

/// Everything is mapped for the first time: all is armed, the plugins are started, and this is printed. Where plugins
/// are started with the last of several processes, nothing was printed of the others before.
Status complete_arming(trace::Trace &trace, Process &process, os::Stopped &stopped) {
    trace::Arming &arming = trace.installed.armings[process.space.get()];
    Status armed = install_first(trace, process, stopped);
    if (!armed) return armed;
    arming.waits_for_loader = false;
    trace::forbid_downloads();
    const bool first = trace.plugins && !trace.plugins->have_started(),
               complete = !trace::anyone_waits_for_loader(trace);
    if (complete) armed = arming::check_any_left(trace);
    if (armed && complete && trace.plugins) armed = trace.plugins->start(process, &stopped);
    if (!armed)
        arming.waits_for_loader = true;
    else if (!first)
        announce(trace, process);
    else if (complete)
        announce_all(trace);
    return armed;
}

} // namespace

void tell_attached(trace::Trace &trace, const Process &process) {
    if (trace.config.quiet) return;
    trace.voice.notice(attached_text(trace, process));
    if (trace.config.verbose == 0) return;
    for (const std::string &line : ctl::armed_lines(trace, process)) trace.voice.notice(line);
}

void announce_all(trace::Trace &trace) {
    for (const auto &[pid, process] : trace.engine.processes)
        if (!process->silent) tell_attached(trace, *process);
}

void begin_time(trace::Trace &trace) {
    if (trace.time_has_begun || trace::anyone_waits_for_loader(trace)) return;
    trace.time_has_begun = true;
    trace.began_ns = monotonic_ns();
    if (trace.config.duration_ns) trace.interrupts->start_timer(*trace.config.duration_ns);
}

namespace {

/// The new program ignores SIGTRAP where the old one did.
void keep_ignored(trace::Trace &trace, const Process &process, os::Stopped &stopped) {
    if (!process.space->recovery.stood_for_ignoring() || tracees::is_32_bit(process.target.pid)) return;
    target::Process image;
    image.pid = process.target.pid;
    auto space = target::AddressSpace::open(image.pid);
    auto maps = os::read_maps(image.pid);
    if (!space || !maps) return;
    image.space = std::move(*space);
    image.maps = std::move(*maps);
    auto instruction = target::find_syscall_instruction(image);
    if (!instruction) return;
    auto kept = process.space->recovery.ignore_after_exec({*image.space, *instruction, trace.engine.waiter, stopped});
    if (!kept) KT_LOG_DEBUG("SIGTRAP is not ignored any more: " + kept.error().message);
}

} // namespace

void on_exec(trace::Trace &trace, Event event) {
    os::Stopped stopped = std::move(*event.stopped);
    Pid pid = event.pid;
    auto found = trace.engine.processes.find(pid.value);
    if (found == trace.engine.processes.end()) {
        std::move(stopped).resume(os::Resume::run);
        return;
    }
    Process &process = *found->second;
    // The thread that called exec goes on under the leader's id.
    for (Tid tid : {event.other, event.tid}) {
        auto task = trace.engine.tasks.find(tid.value);
        if (task == trace.engine.tasks.end()) continue;
        engine::end_calls(trace.engine, process, task->second);
        trace.engine.tasks.erase(task);
        if (tid != stopped.tid()) trace.engine.waiter.forget(tid);
    }
    if (!process.borrowed && !shares_address_space(trace, process)) {
        engine::end_all(trace.engine, process);
        trace.installed.armings.erase(process.space.get());
    }
    keep_ignored(trace, process, stopped);
    leave_ledger(trace, pid); // its page and traps are gone with its memory
    if (process.silent || trace.engine.closing) {
        let_go(trace, pid, std::move(stopped));
        return;
    }
    engine::Task &task = trace.engine.tasks[stopped.tid().value];
    task.tid = stopped.tid();
    task.pid = pid;
    process.borrowed = false;
    process.target.comm = os::read_comm(pid, task.tid);
    report::part_with_modules(trace, process);
    process.target.modules.clear();
    process.target.syscall_instruction.reset();
    auto space = target::AddressSpace::open(pid);
    if (!space) {
        give_up(trace, process, std::move(stopped), space.error());
        return;
    }
    process.target.space = std::move(*space);
    process.space = std::make_shared<engine::AddressSpaceState>();
    process.space->memory = process.target.space;
    trace::Arming &arming = trace.installed.armings[process.space.get()];
    arming.waits_for_loader = true;
    if (tracees::is_32_bit(pid)) {
        leave_32_bit(trace, process, std::move(stopped));
        return;
    }
    std::vector<std::string> unreadable;
    Status armed = target::refresh(process.target, trace.modules, unreadable);
    auto loader = os::read_auxv(pid, AT_BASE);
    if (armed && loader && *loader != 0) {
        armed = arming::watch_loader(trace, process, &stopped);
    } else if (armed) {
        armed = complete_arming(trace, process, stopped);
    }
    if (!armed) {
        give_up(trace, process, std::move(stopped), armed.error());
        return;
    }
    engine::continue_task(trace.engine, task, std::move(stopped));
}

void on_loader(trace::Trace &trace, Event event) {
    os::Stopped stopped = std::move(*event.stopped);
    auto found = trace.engine.tasks.find(event.tid.value);
    Process *process = found == trace.engine.tasks.end() ? nullptr : trace.engine.process_of(found->second);
    if (!process) {
        std::move(stopped).resume(os::Resume::run);
        return;
    }
    VirtAddr at = arch::Host::trap_address(stopped.pc());
    trace::Arming &arming = trace.installed.armings[process->space.get()];
    arming.unloads = target::is_unloading(process->target);
    if (target::modules_complete(process->target)) {
        bool first = arming.waits_for_loader;
        Status armed = first ? complete_arming(trace, *process, stopped) : install_loaded(trace, *process, stopped);
        if (!armed && first) {
            stopped.set_pc(at);
            give_up(trace, *process, std::move(stopped), armed.error());
            return;
        }
        if (!armed) trace::tell_once(trace, armed.error().message);
    }
    engine::finish_hit(trace.engine, *process, found->second, *process->space->site_at(at), std::move(stopped));
    if (auto left = trace.engine.processes.find(event.pid.value); left != trace.engine.processes.end())
        if (auto set = tracees::set_all_watches(trace, *left->second); !set)
            trace::tell_once(trace, set.error().message);
}

} // namespace ktrace::lifecycle
