// names: what the addresses of stacks and function pointers are called.
#pragma once

#include <memory>

#include "output/sink.h"
#include "session/state.h"

namespace ktrace::session {

/// Names addresses by the modules of the traced processes. `state` outlives it.
std::unique_ptr<output::Symbolizer> make_symbolizer(const State &state);

} // namespace ktrace::session
