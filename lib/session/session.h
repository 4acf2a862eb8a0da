// The two ways to trace: attach to processes, run a program. Each traces until its end and returns the exit status of
// the contract (product.md, section 3).
#pragma once

#include <sys/types.h>

#include "trace/config.h"
#include "trace/voice.h"

namespace ktrace::session {

int attach(const trace::Config &config, const trace::Voice &voice);
int run(const trace::Config &config, const trace::Voice &voice);

/// Takes out of a process what a ktrace that was killed left in it, and says what that was. 0, or 1: it could not.
int repair(pid_t pid, const trace::Voice &voice);

} // namespace ktrace::session
