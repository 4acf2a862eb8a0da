// calibrate: measures, on the machine at hand, what a stop adds to a duration beyond the time that ktrace sees.
#pragma once

#include "trap/world.h"

namespace ktrace::session {

/// Traces empty functions of a child of ktrace's own with the very engine, return probes on two of them and an entry
/// probe inside of one: what they seem to take is ktrace's. Takes some 30 ms; where others keep the processors busy,
/// little more than a second, and then what was measured so far is taken. A signal to ktrace ends it. Where it cannot
/// be measured: no correction.
trap::Corrections calibrate();

/// The same while others are traced: in a process of its own, since a wait for the child would answer the others'
/// stops.
trap::Corrections calibrate_aside();

} // namespace ktrace::session
