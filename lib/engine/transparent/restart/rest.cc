#include "engine/transparent/restart/rest.h"

#include <utility>

#include "arch/way_back.h"
#include "os/facts/blocked_syscall.h"
#include "os/proc/procfs.h"
#include "os/tracee/ptrace.h"

namespace ktrace::engine {

using arch::Host;

namespace {

/// What is where the kernel would write.
std::optional<Rest> look_at_rest(Engine &engine, const Task &task) {
    Process *process = engine.process_of(task);
    auto place = os::read_task_place(task.pid, task.tid);
    if (!process || !place) return std::nullopt;
    if (place->running) return task.rest; // it may be on its way back to that sleep
    Rest rest;
    rest.at = os::told_rest_at(task.pid, task.tid, *place);
    if (rest.at.value == 0) return std::nullopt;
    if (process->space->memory->read(rest.at, rest.before) != rest.before.size()) return std::nullopt;
    auto status = os::read_status(task.tid.value);
    if (!status) return std::nullopt;
    if (status->state == 't') return task.rest; // an interrupt before this one has been told what is left by now
    rest.switches = status->switches;
    return rest;
}

/// The sleep that was looked at, or went on at a stop before: the task has not woken up, gone on and slept again before
/// the interrupt came.
bool is_same_sleep(const Task &task, os::Stopped &stopped) {
    const Rest &rest = *task.rest;
    if (!arch::awaits_restart(stopped.registers())) return false;
    if (rest.slept_at)
        return arch::was_restarted(stopped.registers()) &&
               rest.slept_at == std::pair(stopped.pc(), Host::sp(stopped.registers()));
    auto status = os::read_status(task.tid.value);
    return status && status->switches == rest.switches + 1; // that of this stop
}

} // namespace

bool interrupt_asleep(Engine &engine, Tid tid) {
    auto task = engine.tasks.find(tid.value);
    if (task != engine.tasks.end()) task->second.rest = look_at_rest(engine, task->second);
    return os::interrupt(tid);
}

void take_back_rest(Process &process, Task &task, os::Stopped &stopped) {
    if (!task.rest) return;
    Rest &rest = *task.rest;
    target::AddressSpace &space = *process.space->memory;
    std::array<std::byte, sizeof rest.told> now{};
    if (!is_same_sleep(task, stopped) || space.read(rest.at, now) != now.size()) {
        task.rest.reset();
        return;
    }
    if (now == rest.before) return; // it has not slept meanwhile
    rest.told = now;
    space.write(rest.at, rest.before);
    rest.slept_at = std::pair(stopped.pc(), Host::sp(stopped.registers()));
}

void tell_rest(Process &process, Task &task, os::Stopped &stopped) {
    auto rest = std::exchange(task.rest, std::nullopt);
    if (!rest || !rest->slept_at || !arch::awaits_restart(stopped.registers()) ||
        rest->slept_at != std::pair(stopped.pc(), Host::sp(stopped.registers())))
        return;
    // Where it has slept on meanwhile the kernel has told the rest once more, which is less.
    std::array<std::byte, sizeof rest->before> now{};
    target::AddressSpace &space = *process.space->memory;
    if (space.read(rest->at, now) == now.size() && now == rest->before) space.write(rest->at, rest->told);
}

} // namespace ktrace::engine
