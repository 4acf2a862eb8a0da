#include "find_processes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "command_line/options.h"
#include "complain.h"
#include "os/proc/named_processes.h"
#include "os/proc/procfs.h"

namespace ktrace::cli {

namespace {

std::string listed(const std::vector<Pid> &pids) {
    std::string text;
    for (Pid pid : pids) text += (text.empty() ? "" : ", ") + std::to_string(pid.value);
    return text;
}

/// The error where no process of this user's has the name.
tl::unexpected<Error> no_such_name(const std::string &name, const std::vector<Pid> &others) {
    if (!others.empty())
        return fail(Error::Kind::not_found,
                    "no process of yours is called " + name + ", only of other users: " + listed(others),
                    "sudo ktrace may trace them");
    const std::vector<std::string> names = os::process_names();
    auto near = text::nearest(name, {names.begin(), names.end()}, 1);
    return fail(Error::Kind::not_found, "no process is called " + name,
                near.empty() ? "ps -e shows the names" : "did you mean " + near[0] + "?");
}

Result<std::vector<Pid>> find_by_name(const Invocation &invocation, const std::string &name) {
    auto found = os::processes_named(name);
    if (found.own.empty()) return no_such_name(name, found.others);
    if (found.own.size() == 1) return found.own;
    const bool takes_one = invocation.command == Command::list || invocation.command == Command::ctl ||
                           invocation.command == Command::repair;
    if (takes_one)
        return fail(Error::Kind::usage,
                    name_of(invocation.command) + " looks into one process, and " + std::to_string(found.own.size()) +
                        " are called " + name + ": " + listed(found.own),
                    "name it by its number");
    if (!invocation.config.quiet) notify(name + " is processes " + listed(found.own));
    return found.own;
}

/// The process of a number, which may be a thread's. One that is gone is the command's to report.
Pid find_by_number(const Invocation &invocation, pid_t number) {
    auto status = os::read_status(number);
    if (!status || status->tgid == number) return Pid{number};
    const std::string id = std::to_string(number), process = std::to_string(status->tgid);
    std::string notice = id + " is a thread of process " + process;
    if (invocation.command == Command::attach)
        notice += ", all of which is traced; --if 'tid == " + id + "' picks the thread";
    else if (invocation.command == Command::stack || invocation.command == Command::profile)
        notice += ", all of whose threads are looked at";
    if (!invocation.config.quiet) notify(notice);
    return Pid{status->tgid};
}

} // namespace

Status find_processes(Invocation &into) {
    std::vector<pid_t> &pids = into.config.pids;
    for (const std::string &word : into.processes) {
        auto number = text::parse_u64(word);
        auto found = number ? std::vector{find_by_number(into, static_cast<pid_t>(*number))} : find_by_name(into, word);
        if (!found) return fail(found.error());
        for (Pid pid : *found)
            if (std::find(pids.begin(), pids.end(), pid.value) == pids.end()) pids.push_back(pid.value);
    }
    if (into.command == Command::list && !pids.empty()) into.list.pid = pids[0];
    return {};
}

} // namespace ktrace::cli
