// orders: what `ktrace ctl` asks for is done here, in the tracing thread, between two stops.
#pragma once

#include "ctl/wire.h"
#include "trace/trace.h"

namespace ktrace::ctl {

/// True where there is something to do for serve_order, or will be soon.
bool has_orders(const trace::Trace &trace);

/// Carries out one of the orders that wait at the socket, each when the one before it is done.
void serve_order(trace::Trace &trace);

/// One of them. Nothing of an order that fails is done.
Answer carry_out_order(trace::Trace &trace, const trace::Order &order);

} // namespace ktrace::ctl
