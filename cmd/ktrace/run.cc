// run: starts a program and traces it from its first instruction.
#include "commands.h"
#include "session/session.h"
#include "voice.h"

namespace ktrace::cli {

int run(const Invocation &invocation) { return session::run(invocation.config, voice()); }

} // namespace ktrace::cli
