// attach: traces processes that run already.
#include "commands.h"
#include "complain.h"
#include "session/session.h"

namespace ktrace::cli {

int attach(const Invocation &invocation) { return session::attach(invocation.config, {complain, notify}); }

} // namespace ktrace::cli
