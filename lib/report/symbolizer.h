// names: what the addresses of stacks and function pointers are called: functions, those inlined into them, source
// lines.
#pragma once

#include <memory>

#include "output/sink.h"
#include "trace/trace.h"

namespace ktrace::report {

/// Names addresses by the modules of the traced processes. `state` outlives it.
std::unique_ptr<output::Symbolizer> make_symbolizer(const trace::Trace &trace);

/// The modules of a process are about to change, or to go with it: waiting records are printed with their names now,
/// and they are remembered for the tables of the end.
void part_with_modules(trace::Trace &trace, const engine::Process &process);

} // namespace ktrace::report
