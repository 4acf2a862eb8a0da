// orders: what `ktrace ctl` asks for is done here, in the tracing thread, between two stops.
#pragma once

#include "session/control_wire.h"
#include "session/state.h"

namespace ktrace::session {

/// True where there is something to do for serve_order, or will be soon.
bool has_orders(const State &state);

/// Carries out one of the orders that wait at the socket, each when the one before it is done.
void serve_order(State &state);

/// One of them. Nothing of an order that fails is done.
Answer carry_out_order(State &state, const Order &order);

} // namespace ktrace::session
