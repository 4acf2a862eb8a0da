// Options: a command line is read (CLI11) into an Invocation.
//
// Invariants: options are applied in the order in which they were given, so that probes are numbered as users count
// them; an Invocation that is returned is complete and without contradictions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "invocation.h"

namespace ktrace::cli {

/// Reads the arguments behind the program's name. Errors: usage.
Result<Invocation> parse(const std::vector<std::string> &arguments);

/// As users write it.
std::string name_of(Command command);

} // namespace ktrace::cli
