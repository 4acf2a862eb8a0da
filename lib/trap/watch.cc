#include "trap/watch.h"

#include <algorithm>
#include <array>

#include "trap/hit.h"

namespace ktrace::trap {

using arch::Host;
using arch::HostNative;
using arch::WatchRegister;

namespace {

using Registers = std::array<WatchRegister, HostNative::watch_registers + 1>;

VirtAddr base_of(const Watchpoint &watch, os::Stopped &stopped) {
    if (!watch.in_thread) return watch.at;
    auto pointer = Host::thread_pointer(stopped.registers());
    return pointer ? *pointer + static_cast<std::int64_t>(watch.at.value) : VirtAddr{};
}

/// The pc that the program would have: behind the instruction that has run in a slot.
VirtAddr own_pc(Ground &ground, os::Stopped &stopped) {
    VirtAddr pc = stopped.pc();
    Site *site = ground.site_of_pc_in_slot(pc);
    if (!site) return pc;
    bool done = Host::slot_position(site->placed, site->slot, pc) == arch::SlotPosition::after;
    return done ? site->at + site->plan.length : site->at;
}

} // namespace

std::size_t watch_registers_used(const Ground &ground) {
    std::size_t used = 0;
    for (const Watchpoint &watch : ground.watches) used += watch.parts.size();
    return used;
}

void add_watch(World &world, Ground &ground, Watchpoint watch) {
    world.watches = true;
    ground.watch_generation++;
    ground.watches.push_back(std::move(watch));
}

void remove_watch(Ground &ground, const Armed &armed) {
    auto removed = std::erase_if(ground.watches, [&](const Watchpoint &watch) { return watch.armed == &armed; });
    if (removed != 0) ground.watch_generation++;
}

void set_watches(World &world, Task &task, os::Stopped &stopped) {
    Traced *traced = world.process_of(task);
    if (!traced || traced->silent || world.closing || task.watched_as == traced->ground->watch_generation) return;
    Registers registers;
    std::size_t count = 0;
    for (Watchpoint &watch : traced->ground->watches) {
        VirtAddr base = base_of(watch, stopped);
        for (const WatchRegister &part : watch.parts)
            if (count < HostNative::watch_registers)
                registers[count++] = {base + static_cast<std::int64_t>(part.at.value), part.length, part.when};
        remember_value(world, *traced, task, watch, stopped);
    }
    task.watched_as = traced->ground->watch_generation;
    if (!HostNative::set_watches(task.tid, std::span(registers).first(count)) && !stopped.gone())
        world.unwatched = task.tid;
}

void clear_watches(Task &task) {
    if (task.watched_as == 0) return;
    HostNative::set_watches(task.tid, {});
    task.watched_as = 0;
}

void run_watches(World &world, Traced &traced, Task &task, unsigned fired, os::Stopped &stopped) {
    unsigned first = 0;
    VirtAddr pc = own_pc(*traced.ground, stopped);
    for (Watchpoint &watch : traced.ground->watches) {
        unsigned mask = ((1U << watch.parts.size()) - 1) << first;
        first += static_cast<unsigned>(watch.parts.size());
        if ((fired & mask) != 0 && watch.armed->on && !world.closing)
            run_watch(world, traced, task, watch, pc, stopped);
    }
}

} // namespace ktrace::trap
