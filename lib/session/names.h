// names: what the addresses of stacks and function pointers are called: functions, those inlined into them, source
// lines.
#pragma once

#include <memory>

#include "output/sink.h"
#include "session/state.h"

namespace ktrace::session {

/// Names addresses by the modules of the traced processes. `state` outlives it.
std::unique_ptr<output::Symbolizer> make_symbolizer(const State &state);

/// The modules of a process are about to change, or to go with it: what waits is shown by their names now, and they are
/// remembered for the tables of the end.
void part_with_modules(State &state, const trap::Traced &traced);

} // namespace ktrace::session
