#include "os/tracee/sleepers.h"

#include <unordered_map>
#include <utility>

namespace ktrace::os {

namespace {

struct Noted {
    TaskPlace place;
    bool at_stop = false; // it stands at a stop of the call, and the interrupt comes when it was resumed
};

constexpr std::size_t most = 10'000; // of tasks that have ended nothing is known here

std::unordered_map<pid_t, Noted> &all() {
    static std::unordered_map<pid_t, Noted> noted; // of the thread that makes all ptrace requests
    return noted;
}

} // namespace

void note_sleeper(Tid tid) {
    const auto status = read_status(tid.value);
    auto place = status ? read_task_place(Pid{tid.value}, tid) : std::nullopt;
    const bool is_asleep = place && !place->running && place->syscall >= 0;
    const bool at_stop = status && status->state == 't';
    if (at_stop && !is_asleep) return; // at the stop for an interrupt before this one
    all().erase(tid.value);
    if (!is_asleep) return;
    if (all().size() >= most) all().clear();
    all()[tid.value] = {std::move(*place), at_stop};
}

void resume_sleeper(Tid tid) {
    const auto found = all().find(tid.value);
    if (found != all().end() && !std::exchange(found->second.at_stop, false)) all().erase(found);
}

std::optional<TaskPlace> noted_sleeper(Tid tid) {
    const auto found = all().find(tid.value);
    return found == all().end() ? std::nullopt : std::optional(found->second.place);
}

} // namespace ktrace::os
