// Commands: each runs one Invocation to its end and returns ktrace's exit status.
#pragma once

#include "invocation.h"

namespace ktrace::cli {

int attach(const Invocation &invocation);
int run(const Invocation &invocation);
int list(const Invocation &invocation);

} // namespace ktrace::cli
