// The rules between the options and operands of one command line, command by command.
#pragma once

#include "base/result.h"
#include "invocation.h"

namespace ktrace::cli {

/// Completes what was read, or says what does not fit. Errors: usage.
Status check(Invocation &into);

/// The rules between the options of the same probes, which have these kinds. Completes them. Errors: usage.
Status check_actions(probe::Actions &actions, const std::vector<probe::Kind> &kinds);

} // namespace ktrace::cli
