// Voice: how a session speaks to the user of this command line, and how it reads the orders of another one (ctl).
#pragma once

#include "session/session.h"

namespace ktrace::cli {

trace::Voice voice();

} // namespace ktrace::cli
