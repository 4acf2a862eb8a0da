// orders: what `ktrace ctl` asks for is done here, in the tracing thread, between two stops.
#pragma once

#include "session/control_wire.h"
#include "session/state.h"

namespace ktrace::session {

/// Carries out one of the orders that wait at the socket.
void serve_order(State &state);

/// One of them. Nothing of an order that fails is done.
Answer carry_out_order(State &state, const Order &order);

} // namespace ktrace::session
