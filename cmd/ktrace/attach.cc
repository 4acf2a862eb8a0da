// attach: traces processes that run already. Without a probe it says what could be probed.
#include <fmt/format.h>

#include "base/text.h"
#include "commands.h"
#include "complain.h"
#include "inspect/first_steps.h"
#include "os/proc/procfs.h"
#include "session/session.h"
#include "voice.h"

namespace ktrace::cli {

namespace {

constexpr int bad_usage = 2;

Error nothing_to_probe(pid_t pid) {
    Error error{Error::Kind::usage, "there is nothing to probe", {}, {}, -1, 1};
    error.hint = "say what with -k, -j, -r or -w, for example --ret main";
    auto modules = inspect::modules_of_process(Pid{pid});
    if (!modules) return error;
    const inspect::FirstSteps steps = inspect::first_steps(*modules);
    error.message += fmt::format(" in process {} ({}): {} has {} functions by name, ktrace list -p {} shows them", pid,
                                 os::read_comm(Pid{pid}, Tid{pid}), steps.module, steps.functions, pid);
    if (!steps.example.empty())
        error.hint = fmt::format("to begin: ktrace attach -p {} --ret {} --stats", pid, steps.example);
    return error;
}

} // namespace

int attach(const Invocation &invocation) {
    const trace::Config &config = invocation.config;
    if (!config.probes.empty() || !config.plugins.empty()) return session::attach(config, voice());
    complain(nothing_to_probe(config.pids.at(0)));
    return bad_usage;
}

} // namespace ktrace::cli
