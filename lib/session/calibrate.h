// calibrate: measures, on the machine at hand, what a stop adds to a duration beyond the time that ktrace sees.
#pragma once

#include "trap/world.h"

namespace ktrace::session {

/// Traces a child of ktrace's own that hits one trap after the other with nothing in between. Takes some 10 ms. Where
/// it cannot be measured: no correction.
trap::Correction calibrate();

} // namespace ktrace::session
