#include "agent/inside/calls.h"

#include <algorithm>
#include <cstring>

#include "agent/inside/ring.h"
#include "agent/inside/rows.h"
#include "arch/in_process.h"

namespace ktrace::agent {

namespace {

using program::Image;
using program::Machine;
using program::Moment;
using program::MomentImage;

bool is_known_return(const Threads &threads, std::uint64_t address) {
    std::size_t at = hash(address) % returns;
    for (std::size_t i = 0; i < longest_search; i++, at = (at + 1) % returns) {
        const std::uint64_t known = *static_cast<const volatile std::uint64_t *>(&threads.return_to[at]);
        if (known == address) return true;
        if (known == 0) return false;
    }
    return false;
}

bool is_of_now(const Threads &threads, const Call &call) {
    return call.generation == *static_cast<const volatile std::uint32_t *>(&threads.generation);
}

/// The new call lies within the youngest one there is, or that one's function has left by a jump to the new one's.
bool follows(const Hit &hit, const Call &youngest, const arch::CallPlace &place) {
    if (!is_of_now(hit.threads, youngest) || youngest.place < place.at) return false;
    if (youngest.place > place.at) return true;
    return youngest.return_address == place.return_address && youngest.number != hit.site.number;
}

/// Saves what the return needs of now. False: there is no room.
bool save_capture(const Hit &hit, const Image &image, const MomentImage &moment, Machine &machine, Call &call) {
    const std::uint32_t size = image.header().capture_size;
    if (size == 0) return true;
    if (call.captured_at + size > captures_size) return false;
    std::byte *const at = hit.thread.captures + call.captured_at;
    std::memset(at, 0xff, image.header().capture_fixed); // where a part fails: without a value
    machine.capture_into({at, size}, image.header().capture_fixed);
    program::NodeWriter nothing({}, 0, false);
    for (program::Part part : image[moment.body]) machine.run(image[part], nothing);
    if (const std::uint32_t selected = image.header().selection_at; selected != program::no_selection)
        at[selected] = std::byte{1};
    call.captured_size = static_cast<std::uint32_t>(machine.captured());
    return true;
}

/// `left`: the call is wanted, what its return needs is saved, and it is seen to return.
Outcome look_at_entry(const Hit &hit, const arch::CallPlace &place, Call &call) {
    const Image image = agent::image_of(hit.site);
    const MomentImage &moment = image.moment(Moment::call);
    const auto condition = image[moment.condition];
    const bool is_plain = is_comparison(condition);
    if (is_plain && program::compare_register(condition[0], hit.registers) == 0) return Outcome::filtered;
    const bool is_known = is_known_return(hit.threads, place.return_address);
    if ((is_plain || !moment.has_condition) && image.header().capture_size == 0)
        return is_known ? Outcome::left : Outcome::for_ktrace;
    const View view(hit, moment.needs, moment.needs.nsecs ? arch::processor_time() : 0);
    Machine &machine = new_machine(hit.thread, image, view);
    const bool is_wanted = is_plain || holds(machine, image, moment);
    if (needs_ktrace(hit)) return Outcome::for_ktrace;
    if (!is_wanted) return Outcome::filtered;
    const bool is_saved = is_known && save_capture(hit, image, moment, machine, call) && !needs_ktrace(hit);
    return is_saved ? Outcome::left : Outcome::for_ktrace;
}

bool is_nested(const Thread &thread, std::uint64_t calls, std::uint32_t number) {
    while (calls-- > 0)
        if (thread.call[calls].number == number) return true;
    return false;
}

/// In ticks.
struct Took {
    std::uint64_t ticks = 0, taken = 0;
};

Took time_of(const Hit &hit, const Call &call, std::uint64_t end) {
    const std::uint64_t all = end - call.begin;
    const std::uint64_t taken = std::min(all, hit.thread.cost - call.cost + hit.threads.per_call);
    return {all - taken, taken};
}

Returned returned_of(const Hit &hit, std::uint64_t number_of_call, std::uint64_t end) {
    const Call &call = hit.thread.call[number_of_call];
    const Took took = time_of(hit, call, end);
    return {call.begin,
            took.ticks,
            took.taken,
            std::min(took.ticks, hit.thread.call[number_of_call + 1].inner_after),
            hit.thread.hits - call.hits,
            hit.thread.stops - call.stops,
            static_cast<std::uint32_t>(call.is_nested),
            number_of_call <= hit.thread.outer};
}

/// The call around it has the time of this one inside.
void add_to_outer(Call &call, const Returned &returned, bool is_wanted) {
    call.inner_after = call.inner_before + (is_wanted && returned.is_outermost == 0 ? returned.took : 0);
}

Timed timed(const Hit &hit, const Returned &returned) {
    const std::uint64_t rate = hit.threads.ns_per_tick, ns = in_ns(returned.took, rate);
    return {ns,
            std::min(ns, in_ns(returned.inner, rate)),
            in_ns(returned.taken, rate),
            returned.hits,
            returned.stops,
            returned.is_nested != 0};
}

/// A call that has returned, as a program sees it.
struct ReturnView : View {
    ReturnView(const Hit &hit, const Call &call, const MomentImage &moment, const Returned &returned, std::uint64_t end)
        : View(hit, moment.needs, end, in_ns(returned.took, hit.threads.ns_per_tick),
               {hit.thread.captures + call.captured_at, call.captured_size}) {}
};

Image image_of(const Call &call) { return agent::image_of(*reinterpret_cast<const SiteCode *>(call.site)); }

/// Adds a call that has returned to its row of a table. False: it has none, or no place in it, or ktrace has to see to
/// it.
bool add_to_row(const Hit &hit, Call &call, const Returned &returned, std::uint64_t end, Left &left) {
    Row *const row = row_of(hit, call.number);
    if (!row) return false;
    const Image image = image_of(call);
    const MomentImage &moment = image.moment(Moment::ret);
    const bool is_simple = row->is_of_durations != 0 || row->kind == Row::Kind::count;
    if (!moment.has_condition && is_simple) {
        if (!add_duration(hit, *row, timed(hit, returned), left)) return false;
        add_to_outer(call, returned, true);
        return true;
    }
    const ReturnView seen(hit, call, moment, returned, end);
    Machine &machine = new_machine(hit.thread, image, seen);
    const bool is_wanted = holds(machine, image, moment);
    if (needs_ktrace(hit)) return false;
    if (!is_wanted) {
        add_filtered(hit.thread, *row, left);
    } else if (is_simple) {
        if (!add_duration(hit, *row, timed(hit, returned), left)) return false;
    } else {
        program::NodeWriter nothing({}, 0, false);
        const program::Slot value = machine.run(image[moment.value], nothing);
        if (needs_ktrace(hit) || !add_value(hit, *row, value, {}, left)) return false;
    }
    add_to_outer(call, returned, is_wanted);
    return true;
}

/// Writes the record of a call that has returned, at `at`. Gives its size, 0 where it does not fit, or ktrace has to
/// see to it.
std::uint32_t write_return(const Hit &hit, Call &call, const Returned &returned, std::uint64_t end, std::byte *at) {
    std::memcpy(at + sizeof(RingRecord), &returned, sizeof returned);
    constexpr std::size_t before = sizeof(RingRecord) + sizeof returned;
    const Image image = image_of(call);
    const MomentImage &moment = image.moment(Moment::ret);
    const ReturnView seen(hit, call, moment, returned, end);
    Machine &machine = new_machine(hit.thread, image, seen);
    const bool is_wanted = holds(machine, image, moment);
    if (needs_ktrace(hit)) return 0;
    add_to_outer(call, returned, is_wanted);
    if (!is_wanted) return write_header(at, call.number, end, Kind::filtered, sizeof returned);
    const Payload payload = write_payload(machine, image, moment, at + before, longest_record - before);
    if (!payload.fits || needs_ktrace(hit)) return 0;
    return write_header(at, call.number, end, payload.kind, sizeof returned + payload.size);
}

} // namespace

Outcome begin_call(const Hit &hit, Left &left) {
    Thread &thread = hit.thread;
    const arch::CallPlace place = arch::place_of_begun(hit.registers);
    const std::uint64_t calls = left.calls;
    const Call *const youngest = calls != 0 ? &thread.call[calls - 1] : nullptr;
    if (!is_on_own_stack(thread, place.at) || is_in_ktrace(hit.threads, place.at) || calls == most_calls ||
        (youngest && !follows(hit, *youngest, place)))
        return Outcome::for_ktrace;
    Call &call = thread.call[calls];
    call.captured_at = youngest ? (youngest->captured_at + youngest->captured_size + 7) & ~7U : 0;
    call.captured_size = 0;
    if (const Outcome outcome = look_at_entry(hit, place, call); outcome != Outcome::left) return outcome;
    call.place = place.at;
    call.return_address = place.return_address;
    call.site = reinterpret_cast<std::uint64_t>(&hit.site);
    call.inner_before = call.inner_after; // the call around it has left it there
    call.number = hit.site.number;
    call.generation = hit.threads.generation;
    call.stops = thread.stops;
    call.is_nested = is_nested(thread, calls, hit.site.number);
    thread.call[calls + 1].inner_after = 0;
    left.calls++;
    return Outcome::left;
}

Effect end_calls(const Hit &hit, std::uint64_t begin) {
    Thread &thread = hit.thread;
    const arch::CallPlace place = arch::place_of_returned(hit.registers);
    if (is_in_ktrace(hit.threads, place.at)) return ring(hit, Bell::serve);
    const Effect without{1, &hit.threads.nothing};
    Left left = left_by(thread);
    const auto ends_here = [&] { return left.calls != 0 && thread.call[left.calls - 1].place <= place.at; };
    if (!ends_here() || !is_on_own_stack(thread, place.at)) return without;
    for (std::size_t ended = 0; ends_here(); ended++) {
        Call &call = thread.call[left.calls - 1];
        const bool has_returned = call.place == place.at && call.return_address == hit.site.site &&
                                  place.return_address == hit.site.site && is_of_now(hit.threads, call);
        if (!has_returned || ended == records_at_once) return ring(hit, Bell::serve);
        const Returned returned = returned_of(hit, --left.calls, begin);
        const bool is_only = ended == 0 && !ends_here();
        if (is_only && add_to_row(hit, call, returned, begin, left)) break;
        std::byte *const at = next_place(thread, left.tail);
        const std::uint32_t size = write_return(hit, call, returned, begin, at);
        if (size == 0) return ring(hit, Bell::serve);
        left.tail += size;
    }
    return stored(hit, Last::nothing, left);
}

} // namespace ktrace::agent
