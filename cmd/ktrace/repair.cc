// repair: takes out of a process what a ktrace that was killed left in it.
#include "commands.h"
#include "session/session.h"
#include "voice.h"

namespace ktrace::cli {

int repair(const Invocation &invocation) { return session::repair(invocation.config.pids.at(0), voice()); }

} // namespace ktrace::cli
