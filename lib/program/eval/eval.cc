#include "program/eval/eval.h"

#include <cstring>

#include "base/check.h"
#include "program/run/code.h"
#include "program/run/machine.h"

namespace ktrace::program {

namespace {

constexpr std::size_t max_key = 4096;

bool holds(const Slot &slot) { return slot.state == Slot::State::ok && slot.bits != 0; }

/// Runs the parts that write a node each; one that came to nothing still has its place.
void write_nodes(Machine &machine, const std::vector<Instrs> &parts, NodeWriter &out) {
    for (const Instrs &part : parts) {
        std::size_t before = out.size();
        machine.run(part, out);
        if (out.size() == before) out.empty(Tag::na);
    }
}

void aggregate(Machine &machine, const Code &code, const MomentCode &moment, const HitView &hit, ProbeState &state) {
    std::byte bytes[max_key]; // not cleared: the writer says how much of it is used
    NodeWriter key(bytes, code.payload_limit, true);
    write_nodes(machine, moment.key, key);
    Number number;
    Slot value;
    if (moment.has_value) value = machine.run(moment.value, key);
    number.bits = value.bits;
    if (moment.value_is_unsigned) number.kind = Number::Kind::uint;
    if (moment.value_is_float) number.kind = Number::Kind::floating;
    bool readable = moment.has_value && value.state == Slot::State::ok;
    state.aggregation.add(std::span<const std::byte>(bytes, key.size()), hit.pid.value, readable ? &number : nullptr);
}

/// Nothing to be computed: a hit is counted, and that is all.
bool only_counts(const MomentCode &moment) {
    return moment.aggregates && !moment.has_condition && !moment.has_value && moment.key.empty() &&
           moment.injections.empty();
}

/// A call that is selected once, at its entry, is selected at its return.
bool is_selected(const Code &code, const MomentCode &moment, Moment when, const HitView &hit, ProbeState &state) {
    if (when != Moment::ret || !code.selection_at) return !moment.selects || state.selector->next();
    return *code.selection_at < hit.captured.size() && hit.captured[*code.selection_at] == std::byte{1};
}

std::size_t save_capture(Machine &machine, const Code &code, const MomentCode &moment, std::span<std::byte> capture) {
    if (code.capture_size == 0) return 0;
    KT_CHECK(capture.size() >= code.capture_size);
    std::memset(capture.data(), 0xff, code.capture_fixed); // where a part fails: slots and objects without a value
    machine.capture_into(capture, code.capture_fixed);
    NodeWriter nothing({}, 0, false);
    for (const Instrs &part : moment.body) machine.run(part, nothing);
    return machine.captured();
}

void write_event(Machine &machine, const Code &code, const MomentCode &moment, Moment when, const HitView &hit,
                 std::span<std::byte> record) {
    NodeWriter nodes(record.subspan(sizeof(RecordHeader)), code.payload_limit, false);
    write_nodes(machine, moment.body, nodes);
    RecordHeader header;
    header.moment = when;
    header.size = static_cast<std::uint32_t>(sizeof header + nodes.size());
    header.time_ns = hit.time_ns;
    header.pid = hit.pid.value;
    header.tid = hit.tid.value;
    header.duration_ns = hit.duration_ns;
    header.set_name(hit.thread.comm());
    std::memcpy(record.data(), &header, sizeof header);
}

} // namespace

Outcome eval(const Program &program, Moment moment, const HitView &hit, ProbeState &state, std::span<std::byte> capture,
             std::size_t &captured, std::span<std::byte> record) {
    const Code &code = *program.code;
    const MomentCode &now = code.moment(moment);
    captured = 0;
    if (only_counts(now)) {
        if (now.selects && !state.selector->next()) return Outcome::unselected;
        state.aggregation.add({}, hit.pid.value, nullptr);
        return Outcome::aggregated;
    }
    Machine machine(code, hit);
    if (now.has_condition) {
        NodeWriter nothing({}, 0, false);
        if (!holds(machine.run(now.condition, nothing))) return Outcome::filtered;
    }
    bool selected = is_selected(code, now, moment, hit, state);
    if (!selected && now.injections.empty()) return Outcome::unselected;
    if (selected) {
        NodeWriter nothing({}, 0, false);
        for (const Instrs &part : now.injections) machine.run(part, nothing);
    }
    if (moment == Moment::call) {
        captured = save_capture(machine, code, now, capture);
        if (code.selection_at) capture[*code.selection_at] = std::byte{selected};
        return Outcome::accepted;
    }
    if (now.aggregates) {
        aggregate(machine, code, now, hit, state);
        return Outcome::aggregated;
    }
    KT_CHECK(record.size() >= max_record);
    write_event(machine, code, now, moment, hit, record);
    return Outcome::event;
}

} // namespace ktrace::program
