// Commands: each runs one Invocation to its end and returns ktrace's exit status.
#pragma once

#include <string>
#include <vector>

#include "command_line/invocation.h"

namespace ktrace::cli {

/// Exit statuses that are not 0 (EXIT STATUS of the manual).
inline constexpr int failed = 1, bad_usage = 2, expectation_broken = 3, failed_to_run = 125;

int attach(const Invocation &invocation);
int run(const Invocation &invocation);
int list(const Invocation &invocation);
int diff(const Invocation &invocation);
int stack(const Invocation &invocation);
int profile(const Invocation &invocation);
/// `ktrace bench`: prints the table of kprobes.txt for this machine.
int bench(const Invocation &invocation);
/// `arguments`: the command line without the program's name, which the other ktrace reads itself.
int repair(const Invocation &invocation);
int doctor();
int ctl(const Invocation &invocation, const std::vector<std::string> &arguments);
int plugin(const Invocation &invocation);

} // namespace ktrace::cli
