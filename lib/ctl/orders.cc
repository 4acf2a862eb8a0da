#include "ctl/orders.h"

#include <utility>

#include "arming/registry.h"
#include "ctl/listing.h"
#include "ctl/server.h"
#include "tracees/access_errors.h"
#include "upgrade/counts.h"
#include "upgrade/upgrader.h"

namespace ktrace::ctl {

namespace {

using Verb = trace::Order::Verb;

constexpr int failed = 1, bad_usage = 2;

Answer refusal(const trace::Trace &trace, const Error &error) {
    return {error.kind == Error::Kind::usage ? bad_usage : failed, {}, trace.voice.describe(error)};
}

Answer answer(const trace::Trace &trace, const Status &done) { return done ? Answer{} : refusal(trace, done.error()); }

/// The probes that all of the names mean.
Result<std::vector<std::uint32_t>> named_probes(const trace::Trace &trace, const std::vector<std::string> &names) {
    std::vector<std::uint32_t> numbers;
    for (const std::string &name : names) {
        auto found = trace.registry.named(name);
        if (!found) return found;
        numbers.insert(numbers.end(), found->begin(), found->end());
    }
    return numbers;
}

Answer add(trace::Trace &trace, const trace::Order &order) {
    for (const auto &[pid, process] : trace.engine.processes)
        if (auto thawed = tracees::refuse_frozen(Pid{pid}); !thawed) return refusal(trace, thawed.error());
    auto set = std::make_shared<probe::ProbeSet>();
    set->actions = order.actions;
    set->allow_missing = order.allow_missing;
    auto numbers = arming::register_probes(trace, set, order.probes, nullptr);
    if (!numbers) return refusal(trace, numbers.error());
    return {0, added_text(trace, *numbers), {}};
}

Answer change(trace::Trace &trace, const trace::Order &order) {
    auto numbers = named_probes(trace, order.names);
    if (!numbers) return refusal(trace, numbers.error());
    switch (order.verb) {
    case Verb::remove: arming::unregister_probes(trace, *numbers); break;
    case Verb::disable: arming::disable_probes(trace, *numbers); break;
    default: return answer(trace, arming::enable_probes(trace, *numbers));
    }
    return {};
}

void take_order(trace::Trace &trace) {
    auto request = trace.orders.control->take();
    if (!request) return;
    auto order = trace.voice.read_order(request->words);
    if (!order)
        trace.orders.control->answer(request->client, refusal(trace, order.error()));
    else if (order->verb == Verb::add && arming::wants_calibration(trace, order->actions, order->probes))
        trace.orders.postponed.reset(new trace::PostponedOrder{request->client, std::move(*order), {}});
    else
        trace.orders.control->answer(request->client, carry_out_order(trace, *order));
}

} // namespace

bool has_orders(const trace::Trace &trace) {
    return trace.orders.control && (trace.orders.postponed || trace.orders.control->has_orders());
}

void serve_order(trace::Trace &trace) {
    if (!trace.orders.postponed) {
        take_order(trace);
        return;
    }
    auto measured = trace.orders.postponed->calibration.result();
    if (!measured) return;
    const auto postponed = std::exchange(trace.orders.postponed, nullptr);
    trace.engine.corrections = *measured;
    trace.orders.control->answer(postponed->client, carry_out_order(trace, postponed->order));
}

namespace {

Answer carried_out(trace::Trace &trace, const trace::Order &order) {
    switch (order.verb) {
    case Verb::list: return {0, list_text(trace, order.verbose), {}};
    case Verb::stats: upgrade::take_counts(trace); return {0, stats_text(trace, order.format), {}};
    case Verb::add: return add(trace, order);
    case Verb::on:
    case Verb::off: return answer(trace, arming::switch_all(trace, order.verb == Verb::on));
    case Verb::remove:
    case Verb::enable:
    case Verb::disable: return change(trace, order);
    }
    return {};
}

} // namespace

Answer carry_out_order(trace::Trace &trace, const trace::Order &order) {
    Answer answer = carried_out(trace, order);
    for (const auto &[pid, process] : trace.engine.processes) upgrade::clear_idle_boundaries(trace, process->space);
    return answer;
}

} // namespace ktrace::ctl
