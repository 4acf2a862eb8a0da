// Voice: how a trace speaks to the user. cmd/ fills it in: text for a human.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/config.h"

namespace ktrace::trace {

/// How errors and notices reach the user: cmd/ turns them into text for a human.
struct Voice {
    std::function<void(const Error &)> complain;        // standard error
    std::function<void(const std::string &)> notice;    // standard error; not with -q
    std::function<std::string(const Error &)> describe; // what complain would print
    /// The command line of a `ktrace ctl`, without the program's name. Errors: usage.
    std::function<Result<Order>(const std::vector<std::string> &)> read_order;
};

} // namespace ktrace::trace
