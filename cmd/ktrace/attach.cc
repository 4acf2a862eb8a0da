// attach: traces processes that run already.
#include "commands.h"
#include "session/session.h"
#include "voice.h"

namespace ktrace::cli {

int attach(const Invocation &invocation) { return session::attach(invocation.config, voice()); }

} // namespace ktrace::cli
