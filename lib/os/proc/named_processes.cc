#include "os/proc/named_processes.h"

#include <algorithm>

#include <limits.h>
#include <unistd.h>

#include "base/text.h"
#include "os/proc/procfs.h"

namespace ktrace::os {

namespace {

/// Without its folder; empty: there is none, or its link may not be read.
std::string name_of_executable(Pid pid) {
    char path[PATH_MAX];
    const ssize_t length = ::readlink((process_folder(pid) + "/exe").c_str(), path, sizeof path);
    if (length <= 0) return {};
    std::string_view name(path, static_cast<std::size_t>(length));
    constexpr std::string_view replaced = " (deleted)";
    if (name.ends_with(replaced)) name.remove_suffix(replaced.size());
    return std::string(text::base_name(name));
}

bool runs_a_program(Pid pid) {
    return pid.value != ::getpid() && !is_kernel_thread(pid.value) && !has_ended(Tid{pid.value});
}

} // namespace

NamedProcesses processes_named(std::string_view name) {
    NamedProcesses found;
    for (Pid pid : read_processes()) {
        auto status = read_status(pid.value);
        if (!status || (status->name != name && name_of_executable(pid) != name) || !runs_a_program(pid)) continue;
        const bool is_own = ::geteuid() == 0 || (status->uid == ::getuid() && status->euid == ::getuid());
        (is_own ? found.own : found.others).push_back(pid);
    }
    for (auto *list : {&found.own, &found.others}) std::sort(list->begin(), list->end());
    return found;
}

std::vector<std::string> process_names() {
    std::vector<std::string> names;
    for (Pid pid : read_processes()) {
        std::string name = read_comm(pid, Tid{pid.value});
        if (!name.empty() && runs_a_program(pid)) names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

} // namespace ktrace::os
