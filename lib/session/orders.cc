#include "session/orders.h"

#include <utility>

#include "session/listing.h"
#include "session/refusals.h"
#include "session/registry.h"

namespace ktrace::session {

namespace {

using Verb = Order::Verb;

constexpr int failed = 1, bad_usage = 2;

Answer refusal(const State &state, const Error &error) {
    return {error.kind == Error::Kind::usage ? bad_usage : failed, {}, state.voice.describe(error)};
}

Answer answer(const State &state, const Status &done) { return done ? Answer{} : refusal(state, done.error()); }

/// The probes that all of the names mean.
Result<std::vector<std::uint32_t>> named_probes(const State &state, const std::vector<std::string> &names) {
    std::vector<std::uint32_t> numbers;
    for (const std::string &name : names) {
        auto found = state.registry.named(name);
        if (!found) return found;
        numbers.insert(numbers.end(), found->begin(), found->end());
    }
    return numbers;
}

std::vector<probe::Wish> wishes_of(const Order &order) {
    std::vector<probe::Wish> wishes;
    for (const probe::Probe &probe : order.probes) wishes.push_back({probe.kind, probe.spec});
    return wishes;
}

Answer add(State &state, const Order &order) {
    for (const auto &[pid, traced] : state.world.processes)
        if (auto thawed = refuse_frozen(Pid{pid}); !thawed) return refusal(state, thawed.error());
    auto set = std::make_shared<probe::ProbeSet>();
    set->actions = order.actions;
    set->allow_missing = order.allow_missing;
    auto numbers = register_probes(state, set, wishes_of(order), nullptr);
    if (!numbers) return refusal(state, numbers.error());
    return {0, added_text(state, *numbers), {}};
}

Answer change(State &state, const Order &order) {
    auto numbers = named_probes(state, order.names);
    if (!numbers) return refusal(state, numbers.error());
    switch (order.verb) {
    case Verb::remove: unregister_probes(state, *numbers); break;
    case Verb::disable: disable_probes(state, *numbers); break;
    default: return answer(state, enable_probes(state, *numbers));
    }
    return {};
}

void take_order(State &state) {
    auto request = state.control->take();
    if (!request) return;
    auto order = state.voice.read_order(request->words);
    if (!order)
        state.control->answer(request->client, refusal(state, order.error()));
    else if (order->verb == Verb::add && wants_calibration(state, order->actions, wishes_of(*order)))
        state.postponed.reset(new PostponedOrder{request->client, std::move(*order), {}});
    else
        state.control->answer(request->client, carry_out_order(state, *order));
}

} // namespace

bool has_orders(const State &state) { return state.control && (state.postponed || state.control->has_orders()); }

void serve_order(State &state) {
    if (!state.postponed) {
        take_order(state);
        return;
    }
    auto measured = state.postponed->calibration.result();
    if (!measured) return;
    const auto postponed = std::exchange(state.postponed, nullptr);
    state.world.corrections = *measured;
    state.control->answer(postponed->client, carry_out_order(state, postponed->order));
}

Answer carry_out_order(State &state, const Order &order) {
    switch (order.verb) {
    case Verb::list: return {0, list_text(state), {}};
    case Verb::stats: return {0, stats_text(state, order.format), {}};
    case Verb::add: return add(state, order);
    case Verb::on:
    case Verb::off: return answer(state, switch_all(state, order.verb == Verb::on));
    case Verb::remove:
    case Verb::enable:
    case Verb::disable: return change(state, order);
    }
    return {};
}

} // namespace ktrace::session
