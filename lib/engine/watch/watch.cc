#include "engine/watch/watch.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "engine/calls/inside.h"
#include "engine/eval/evaluation.h"

namespace ktrace::engine {

using arch::Host;
using arch::HostNative;
using arch::WatchRegister;
using program::Moment;

namespace {

/// The debug registers that a task has to have.
struct Wanted {
    std::array<WatchRegister, HostNative::watch_registers> registers;
    std::vector<std::uint32_t> watching; // by register
};

VirtAddr base_of(const Watchpoint &watch, os::Stopped &stopped) {
    if (!watch.in_thread) return watch.at;
    auto pointer = Host::thread_pointer(stopped.registers());
    return pointer ? *pointer + static_cast<std::int64_t>(watch.at.value) : VirtAddr{};
}

/// The pc that the program would have: behind the instruction that has run in a slot.
VirtAddr own_pc(AddressSpaceState &space, os::Stopped &stopped) {
    VirtAddr pc = stopped.pc();
    Site *site = space.site_of_pc_in_slot(pc);
    if (!site) return pc;
    const auto position = Host::slot_position(site->placed, site->slot, pc);
    // The call has pushed its return address: it goes on at its target next.
    if (site->placed.pushed != 0 && position == arch::SlotPosition::inside)
        return site->plan.target.value_or(site->at + site->plan.length);
    bool done = position == arch::SlotPosition::after;
    return done ? site->at + site->plan.length : site->at;
}

/// The thread that has the value; 0: all threads share it.
pid_t owner_of(const Watchpoint &watch, const Task &task) { return watch.in_thread ? task.tid.value : 0; }

std::vector<std::byte> value_of(Engine &engine, Process &process, Task &task, const Watchpoint &watch,
                                os::Stopped &stopped) {
    std::vector<std::byte> value(watch.attachment->program->capture_size());
    std::size_t size = 0;
    run_program(engine, process, task, *watch.attachment, Moment::call, stopped.pc(), stopped, value, size, {},
                nullptr);
    value.resize(size);
    return value;
}

/// Notes the watched value, if none is known yet.
void remember_value(Engine &engine, Process &process, Task &task, Watchpoint &watch, os::Stopped &stopped) {
    auto [known, is_new] = watch.values.try_emplace(owner_of(watch, task));
    if (is_new) known->second = value_of(engine, process, task, watch, stopped);
}

/// A watchpoint has fired; `pc`: behind the instruction, at the program's own address.
void run_watch(Engine &engine, Process &process, Task &task, Watchpoint &watch, VirtAddr pc, os::Stopped &stopped) {
    const Attachment &attachment = *watch.attachment;
    attachment.counters->hits++;
    if (engine.overhead) engine.overhead->charge(attachment.location);
    std::vector<std::byte> &value = watch.values[owner_of(watch, task)];
    if (attachment.inside != 0 && !is_inside(engine, process, task, attachment.inside, pc, stopped)) {
        attachment.counters->filtered++;
    } else {
        std::size_t unused = 0;
        count(*attachment.counters,
              run_program(engine, process, task, attachment, Moment::watch, pc, stopped, {}, unused, value, nullptr));
        Diversion diversion; // a register may be set, and the pc among them
        if (inject(engine, process, stopped, diversion)) attachment.counters->injected++;
    }
    value = value_of(engine, process, task, watch, stopped);
}

Watchpoint *watch_of(AddressSpaceState &space, const Attachment &attachment) {
    for (Watchpoint &watch : space.watches)
        if (watch.attachment == &attachment) return &watch;
    return nullptr;
}

Wanted wanted_by(AddressSpaceState &space, os::Stopped &stopped) {
    Wanted wanted;
    for (const Watchpoint &watch : space.watches) {
        if (!watch.attachment->on) continue;
        VirtAddr base = base_of(watch, stopped);
        for (const WatchRegister &part : watch.parts) {
            if (wanted.watching.size() == wanted.registers.size()) break;
            wanted.registers[wanted.watching.size()] = {base + static_cast<std::int64_t>(part.at.value), part.length,
                                                        part.when};
            wanted.watching.push_back(watch.id);
        }
    }
    return wanted;
}

} // namespace

std::size_t watch_registers_used(const AddressSpaceState &space) {
    std::size_t used = 0;
    for (const Watchpoint &watch : space.watches) used += watch.parts.size();
    return used;
}

void add_watch(Engine &engine, AddressSpaceState &space, Watchpoint watch) {
    engine.watches = true;
    space.watch_generation++;
    watch.id = ++space.last_watch;
    space.watches.push_back(std::move(watch));
}

void remove_watch(AddressSpaceState &space, Attachment &attachment) {
    attachment.on = false;
    attachment.dismissed = true;
    auto removed =
        std::erase_if(space.watches, [&](const Watchpoint &watch) { return watch.attachment == &attachment; });
    if (removed != 0) space.watch_generation++;
}

void switch_watch(AddressSpaceState &space, Attachment &attachment, bool on) {
    if (attachment.on == on) return;
    attachment.on = on;
    space.watch_generation++;
    if (Watchpoint *watch = watch_of(space, attachment); watch && on) watch->values.clear(); // others may have written
}

void set_watches(Engine &engine, Task &task, os::Stopped &stopped) {
    Process *process = engine.process_of(task);
    if (task.watches.is_off) return;
    if (!process || process->silent || engine.closing || task.watches.generation == process->space->watch_generation)
        return;
    AddressSpaceState &space = *process->space;
    // The registers that have fired have to stay as they are until the stop is served.
    if (!task.watches.registers.empty() && os::has_fault_pending(task.tid, SIGTRAP)) return;
    for (Watchpoint &watch : space.watches)
        if (watch.attachment->on) remember_value(engine, *process, task, watch, stopped);
    Wanted wanted = wanted_by(space, stopped);
    task.watches.generation = space.watch_generation;
    if (wanted.watching.empty() && task.watches.registers.empty()) return;
    task.watches.registers = std::move(wanted.watching);
    task.watches.executing = 0;
    for (std::size_t i = 0; i < task.watches.registers.size(); i++)
        if (wanted.registers[i].when == WatchRegister::When::execute) task.watches.executing |= 1U << i;
    if (!HostNative::set_watches(task.tid, std::span(wanted.registers).first(task.watches.registers.size())) &&
        !stopped.gone())
        engine.unwatched = task.tid;
}

void clear_watches(Task &task) {
    if (task.watches.registers.empty()) return;
    HostNative::set_watches(task.tid, {});
    task.watches.registers.clear();
    task.watches.generation = 0;
}

void step_off_watches(Task &task, unsigned awaited) {
    task.watches.is_off = true;
    task.watches.awaited = awaited;
    HostNative::set_watches(task.tid, {});
}

void end_step_off(Task &task) {
    if (!std::exchange(task.watches.is_off, false)) return;
    task.watches.awaited = 0;
    task.watches.generation = 0;
}

void forget_values(AddressSpaceState &space, const Task &task) {
    for (Watchpoint &watch : space.watches)
        if (watch.in_thread) watch.values.erase(task.tid.value);
}

void run_watches(Engine &engine, Process &process, Task &task, unsigned fired, os::Stopped &stopped) {
    VirtAddr pc = own_pc(*process.space, stopped);
    for (Watchpoint &watch : process.space->watches) {
        bool has_fired = false;
        for (std::size_t i = 0; i < task.watches.registers.size(); i++)
            has_fired = has_fired || ((fired >> i & 1) != 0 && task.watches.registers[i] == watch.id);
        if (has_fired && watch.attachment->on && !engine.closing) run_watch(engine, process, task, watch, pc, stopped);
    }
}

} // namespace ktrace::engine
