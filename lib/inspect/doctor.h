// doctor: what this machine lets this user trace, found out on a child of ktrace's own and by the kernel's settings.
#pragma once

#include <string>
#include <vector>

namespace ktrace::inspect {

/// One thing that tracing needs.
struct Finding {
    enum class State : std::uint8_t {
        good,
        limited, // ktrace works, but not for everything
        bad,     // ktrace cannot do its job
    };
    State state = State::good;
    std::string what; // what was looked at
    std::string told; // how it is here
    std::string fix;  // the one command, or the one thing to do; empty where nothing is to be mended
};

std::vector<Finding> examine();

} // namespace ktrace::inspect
