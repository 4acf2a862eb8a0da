// run: starts a program and traces it from its first instruction.
#include "commands.h"
#include "complain.h"
#include "session/session.h"

namespace ktrace::cli {

int run(const Invocation &invocation) { return session::run(invocation.config, {complain, notify}); }

} // namespace ktrace::cli
