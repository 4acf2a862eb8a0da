// Stacks of addresses as named frames: the same words as in events.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "output/symbolizer.h"
#include "sample/threads.h"

namespace ktrace::sample {

/// The frames, innermost first, those of inlined functions among them.
std::vector<output::NamedFrame> name_stack(Pid pid, const Stack &stack, output::Symbolizer &symbolizer);

/// A line a frame, as behind an event.
void append_stack_lines(std::string &out, Pid pid, const Stack &stack, output::Symbolizer &symbolizer);

/// A list of frames, as in an event.
void append_stack_json(std::string &out, Pid pid, const Stack &stack, output::Symbolizer &symbolizer);

} // namespace ktrace::sample
