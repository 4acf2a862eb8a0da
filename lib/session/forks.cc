#include "session/forks.h"

#include <cerrno>
#include <ctime>

#include "base/clock.h"
#include "os/asleep.h"
#include "os/stopped.h"
#include "os/ticker.h"
#include "session/seize.h"
#include "session/settle.h"
#include "trap/dispatch.h"
#include "trap/interruption.h"
#include "trap/rest.h"

namespace ktrace::session {

namespace {

/// It has been somewhere else than in a fork since it was looked at first: a fork that it begins now copies what is
/// there.
bool is_past(State &state, Pid pid, Tid tid) {
    if (state.world.waiter.has_news_of(tid) || os::has_ended(tid)) return true;
    const auto place = os::read_task_place(pid, tid);
    return !place || !os::may_fork(*place);
}

/// At a stop of any kind a task is in no fork. What it stops for beside our interrupt is served later.
void see_stop(State &state, trap::Traced &traced, Tid tid, std::uint64_t end) {
    while (monotonic_ns() < end) {
        auto stop = state.world.waiter.next_of(tid, os::Waiter::Block::briefly);
        if (!stop && errno == EINTR && !os::has_ended(tid)) continue;
        if (!stop) return settle_ended(state, tid);
        if (stop->kind != os::Stop::Kind::started) return state.world.waiter.put_back(*stop);
        os::Stopped stopped(state.world.waiter, *stop);
        trap::Task &task = state.world.tasks.at(tid.value);
        trap::go_unnoticed(traced, task, stopped);
        trap::continue_task(state.world, task, std::move(stopped));
        return;
    }
}

} // namespace

void let_forks_pass(State &state, trap::Traced &traced, Tid stopped) {
    constexpr timespec moment{0, 200'000};
    constexpr std::uint64_t longest_ns = 2'000'000'000; // in all: a fork may wait for somebody else
    const Pid pid = traced.process.pid;
    const std::uint64_t end = monotonic_ns() + patience_with_running_ns;
    std::vector<Tid> rest;
    for (const auto &[id, task] : state.world.tasks)
        if (task.pid == pid && task.tid != stopped) rest.push_back(task.tid);
    while (true) {
        std::erase_if(rest, [&](Tid tid) { return is_past(state, pid, tid); });
        if (rest.empty()) return;
        if (monotonic_ns() > end) break;
        ::nanosleep(&moment, nullptr);
    }
    os::Ticker ticker; // no wait for one task is for ever
    ticker.start();
    std::erase_if(rest, [&](Tid tid) { return !trap::interrupt_asleep(state.world, tid); });
    const std::uint64_t given_up = monotonic_ns() + longest_ns;
    for (Tid tid : rest) see_stop(state, traced, tid, given_up);
}

} // namespace ktrace::session
