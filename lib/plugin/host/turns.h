// Turns: the host's side of the wire.
#pragma once

#include <cstdint>

#include "plugin/wire.h"

namespace ktrace::plugin::host {

/// The wire and the window of this host; set once by main.
extern Wire *wire;
extern int wire_fd;
extern Window window;

/// Waits for ktrace to hand over.
void wait_for_turn();
/// Hands over without waiting.
void hand_over(Request request);
/// Asks ktrace for something in the middle of a Call; its operands were put into the wire. Returns Wire::result.
std::int64_t ask(Request request);

} // namespace ktrace::plugin::host
