// Unwinding: the functions by which frames vanish without returning: by an exception, a longjmp or another stack. Hits
// there are counted, by task: a call in flight that began before the last of them is checked before its end is counted
// as a return. Calls in flight become doubtful (doubtful_calls.h).
#pragma once

#include "engine/space/site.h"

namespace ktrace::engine {

/// At the first instruction of such a function.
extern const InternalPurpose unwinds;

} // namespace ktrace::engine
