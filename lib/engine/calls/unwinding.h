// Unwinding: where frames may vanish without returning, by an exception, longjmp or another stack. Hits there are
// counted, by task: a call in flight that began before the last of them is looked at closely before it is believed.
// Calls in flight are put in doubt (doubtful_calls.h).
#pragma once

#include "engine/space/site.h"

namespace ktrace::engine {

/// At the first instruction of a function after whose call frames may be gone.
extern const InternalPurpose unwinds;

} // namespace ktrace::engine
