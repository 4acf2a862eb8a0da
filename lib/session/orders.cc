#include "session/orders.h"

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

Answer add(State &state, const Order &order) {
    for (const auto &[pid, traced] : state.world.processes)
        if (auto thawed = refuse_frozen(Pid{pid}); !thawed) return refusal(state, thawed.error());
    auto set = std::make_shared<probe::ProbeSet>();
    set->actions = order.actions;
    set->allow_missing = order.allow_missing;
    std::vector<probe::Wish> wishes;
    for (const probe::Probe &probe : order.probes) wishes.push_back({probe.kind, probe.spec});
    auto numbers = register_probes(state, set, wishes, nullptr);
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

Answer answer_request(State &state, const std::vector<std::string> &words) {
    auto order = state.voice.read_order(words);
    if (!order) return refusal(state, order.error());
    return carry_out_order(state, *order);
}

} // namespace

void serve_order(State &state) {
    if (auto request = state.control->take())
        state.control->answer(request->client, answer_request(state, request->words));
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
