// The rules between the options and operands of one command line, command by command.
#pragma once

#include "base/result.h"
#include "invocation.h"

namespace ktrace::cli {

/// Completes what was read, or says what does not fit. Errors: usage.
Status check(Invocation &into);

} // namespace ktrace::cli
