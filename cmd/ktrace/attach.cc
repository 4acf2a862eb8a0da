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

/// `attach --stack` alone asks where the threads are.
Error no_place_for_stacks(pid_t pid) {
    return {Error::Kind::usage,
            "there is nothing to probe: --stack is of a probe's events",
            fmt::format("where the threads are now: ktrace stack -p {}", pid),
            {},
            -1,
            1};
}

Error nothing_to_probe(pid_t pid) {
    Error error{Error::Kind::usage, "no probe is given", {}, {}, -1, 1};
    error.hint = "say what with -k, -j, -r or -w, for example --ret main";
    auto modules = inspect::modules_of_process(Pid{pid});
    if (!modules) return error;
    const inspect::FirstSteps steps = inspect::first_steps(*modules);
    error.message +=
        fmt::format(" for process {} ({}): {} has {} functions that can be probed, ktrace list -p {} shows them", pid,
                    os::read_comm(Pid{pid}, Tid{pid}), steps.module, steps.functions, pid);
    if (!steps.example.empty())
        error.hint = fmt::format("to begin: ktrace attach -p {} --ret {} --stats", pid, steps.example);
    return error;
}

} // namespace

int attach(const Invocation &invocation) {
    const trace::Config &config = invocation.config;
    if (!config.probes.empty() || !config.plugins.empty()) return session::attach(config, voice());
    const pid_t pid = config.pids.at(0);
    complain(config.actions.stack >= 0 ? no_place_for_stacks(pid) : nothing_to_probe(pid));
    return bad_usage;
}

} // namespace ktrace::cli
