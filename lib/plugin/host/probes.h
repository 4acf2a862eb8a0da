// Probes: the plugin's probes by number, and its calls in flight.
#pragma once

#include <cstdint>

#include "plugin/host/guard.h"

namespace ktrace::plugin::host {

/// Takes in ktrace's news: calls that will not return, misses, probes that came and went with a library.
void take_notes();

/// Runs what a Call of ktrace's asks for: pre, post, entry, call, ret, fault.
Left run_handler(Call call);

/// The plugin is about to go: nothing of it may be written to any more.
void forget_probes();

} // namespace ktrace::plugin::host
