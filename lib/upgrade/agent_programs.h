// Agent programs: which programs the agent can run in the process itself, at a hit of its site.
#pragma once

#include "program/run/image.h"

namespace ktrace::upgrade {

/// Why a moment of a program needs a stop; nullptr: it needs none. Words for the user.
const char *why_stops(const program::Image &image, program::Moment moment);

} // namespace ktrace::upgrade
