// The two ways to trace: attach to processes, run a program. Each traces until its end and returns the exit status of
// the contract (product.md, section 3).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/config.h"

namespace ktrace::session {

/// How errors and notices reach the user: cmd/ turns them into text for a human.
struct Voice {
    std::function<void(const Error &)> complain;        // standard error
    std::function<void(const std::string &)> notice;    // standard error; not with -q
    std::function<std::string(const Error &)> describe; // what complain would print
    /// The command line of a `ktrace ctl`, without the program's name. Errors: usage.
    std::function<Result<Order>(const std::vector<std::string> &)> read_order;
};

int attach(const Config &config, const Voice &voice);
int run(const Config &config, const Voice &voice);

/// Takes out of a process what a ktrace that was killed left in it, and says what that was. 0, or 1: it could not.
int repair(pid_t pid, const Voice &voice);

} // namespace ktrace::session
