#include "os/tracee/sleepers.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace ktrace::os {

namespace {

struct Noted {
    TaskPlace place;
    std::uint64_t switches = 0; // by which it has left its processor of its own accord
};

constexpr std::size_t most = 10'000; // of tasks that have ended nothing is known here

std::unordered_map<pid_t, Noted> &all() {
    static std::unordered_map<pid_t, Noted> noted; // of the thread that makes all ptrace requests
    return noted;
}

} // namespace

void note_sleeper(Tid tid) {
    const auto before = read_status(tid.value);
    auto place = before ? read_task_place(Pid{tid.value}, tid) : std::nullopt;
    const auto found = all().find(tid.value);
    const bool is_on_its_way =
        place && place->running && found != all().end() && before->switches == found->second.switches;
    if (is_on_its_way) return; // from the entry of its call, where it was noted, to its sleep
    all().erase(tid.value);
    if (!place || place->running || place->syscall < 0) return;
    if (all().size() >= most) all().clear();
    all()[tid.value] = {std::move(*place), before->switches};
}

std::optional<TaskPlace> noted_sleeper(Tid tid) {
    const auto found = all().find(tid.value);
    if (found == all().end()) return std::nullopt;
    const auto now = read_status(tid.value);
    // The one more is that to the stop.
    if (!now || now->switches != found->second.switches + 1) return std::nullopt;
    return found->second.place;
}

} // namespace ktrace::os
