// The two ways to trace: attach to processes, run a program. Each traces until its end and returns the exit status
// (ktrace(1), EXIT STATUS).
#pragma once

#include <sys/types.h>

#include "trace/config.h"
#include "trace/voice.h"

namespace ktrace::session {

int attach(const trace::Config &config, const trace::Voice &voice);
int run(const trace::Config &config, const trace::Voice &voice);

/// Takes the remains of a killed ktrace out of a process, and prints what they were. Returns 0, or 1 on failure.
int repair(pid_t pid, const trace::Voice &voice);

} // namespace ktrace::session
