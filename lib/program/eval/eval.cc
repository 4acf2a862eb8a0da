#include "program/eval/eval.h"

#include <cstring>

#include "base/check.h"
#include "program/run/machine.h"

namespace ktrace::program {

namespace {

constexpr std::size_t max_key = 4096;

bool holds(const Slot &slot) { return slot.state == Slot::State::ok && slot.bits != 0; }

void aggregate(Machine &machine, const Image &image, const MomentImage &moment, const HitView &hit, ProbeState &state) {
    std::byte bytes[max_key]; // not cleared: the writer says how much of it is used
    NodeWriter key(bytes, image.header().payload_limit, true);
    machine.write_nodes(moment.key, key);
    Number number;
    Slot value;
    if (moment.has_value) value = machine.run(image[moment.value], key);
    number.bits = value.bits;
    if (moment.value_is_unsigned) number.kind = Number::Kind::uint;
    if (moment.value_is_float) number.kind = Number::Kind::floating;
    bool readable = moment.has_value && value.state == Slot::State::ok;
    state.aggregation.add(std::span<const std::byte>(bytes, key.size()), hit.pid.value, readable ? &number : nullptr,
                          hit.duration);
}

/// Nothing to be computed: a hit is counted, and that is all.
bool only_counts(const MomentImage &moment) {
    return moment.aggregates && !moment.has_condition && !moment.has_value && moment.key.count == 0 &&
           moment.injections.count == 0;
}

/// A call that is selected once, at its entry, is selected at its return.
bool is_selected(const Image &image, const MomentImage &moment, Moment when, const HitView &hit, ProbeState &state) {
    std::uint32_t at = image.header().selection_at;
    if (when != Moment::ret || at == no_selection) return !moment.selects || state.selector->next();
    return at < hit.captured.size() && hit.captured[at] == std::byte{1};
}

std::size_t save_capture(Machine &machine, const Image &image, const MomentImage &moment,
                         std::span<std::byte> capture) {
    const ImageHeader &header = image.header();
    if (header.capture_size == 0) return 0;
    KT_CHECK(capture.size() >= header.capture_size);
    std::memset(capture.data(), 0xff, header.capture_fixed); // where a part fails: slots and objects without a value
    machine.capture_into(capture, header.capture_fixed);
    NodeWriter nothing({}, 0, false);
    for (Part part : image[moment.body]) machine.run(image[part], nothing);
    return machine.captured();
}

void write_event(Machine &machine, const Image &image, const MomentImage &moment, Moment when, const HitView &hit,
                 std::span<std::byte> record) {
    NodeWriter nodes(record.subspan(sizeof(RecordHeader)), image.header().payload_limit, false);
    machine.write_nodes(moment.body, nodes);
    RecordHeader header;
    header.moment = when;
    header.size = static_cast<std::uint32_t>(sizeof header + nodes.size());
    header.time_ns = hit.time_ns;
    header.pid = hit.pid.value;
    header.tid = hit.tid.value;
    header.duration_ns = hit.duration_ns;
    if (hit.duration) {
        header.entry_ns = hit.time_ns - hit.duration->since_ns;
        header.error_ns = hit.duration->error_ns();
        header.taken_ns = hit.duration->taken_ns;
    }
    header.set_name(hit.thread->comm());
    std::memcpy(record.data(), &header, sizeof header);
}

} // namespace

Outcome eval(const Image &image, Moment moment, const HitView &hit, ProbeState &state, std::span<std::byte> capture,
             std::size_t &captured, std::span<std::byte> record) {
    const MomentImage &now = image.moment(moment);
    captured = 0;
    if (only_counts(now)) {
        if (now.selects && !state.selector->next()) return Outcome::unselected;
        state.aggregation.add({}, hit.pid.value, nullptr);
        return Outcome::aggregated;
    }
    Machine machine(image, hit);
    if (now.has_condition) {
        NodeWriter nothing({}, 0, false);
        if (!holds(machine.run(image[now.condition], nothing))) return Outcome::filtered;
    }
    bool selected = is_selected(image, now, moment, hit, state);
    if (!selected && now.injections.count == 0) return Outcome::unselected;
    if (selected) {
        NodeWriter nothing({}, 0, false);
        for (Part part : image[now.injections]) machine.run(image[part], nothing);
    }
    if (moment == Moment::call) {
        captured = save_capture(machine, image, now, capture);
        if (std::uint32_t at = image.header().selection_at; at != no_selection) capture[at] = std::byte{selected};
        return Outcome::accepted;
    }
    if (now.aggregates) {
        aggregate(machine, image, now, hit, state);
        return Outcome::aggregated;
    }
    KT_CHECK(record.size() >= max_record);
    write_event(machine, image, now, moment, hit, record);
    return Outcome::event;
}

} // namespace ktrace::program
