#include "agent/inside/calls.h"

#include <algorithm>
#include <cstring>

#include "agent/inside/ring.h"
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

/// Writes the record of a call that has returned, at `at`. Gives its size, 0 where it does not fit, or ktrace has to
/// see to it.
std::uint32_t finish(const Hit &hit, std::uint64_t number_of_call, std::uint64_t end, std::byte *at) {
    Thread &thread = hit.thread;
    Call &call = thread.call[number_of_call];
    const Took took = time_of(hit, call, end);
    const bool is_outermost = number_of_call <= thread.outer;
    const Returned returned{call.begin,
                            took.ticks,
                            took.taken,
                            std::min(took.ticks, thread.call[number_of_call + 1].inner_after),
                            thread.hits - call.hits,
                            thread.stops - call.stops,
                            static_cast<std::uint32_t>(call.is_nested),
                            is_outermost};
    std::memcpy(at + sizeof(RingRecord), &returned, sizeof returned);
    constexpr std::size_t before = sizeof(RingRecord) + sizeof returned;
    const Image image = image_of(*reinterpret_cast<const SiteCode *>(call.site));
    const MomentImage &moment = image.moment(Moment::ret);
    const Floats floats(hit, moment.needs);
    const View view = view_of(hit, floats, in_ns(took.ticks, hit.threads.ns_per_tick),
                              {thread.captures + call.captured_at, call.captured_size});
    Machine &machine = new_machine(thread, image, view);
    const bool is_wanted = holds(machine, image, moment);
    if (needs_ktrace(hit)) return 0;
    if (!is_wanted) {
        call.inner_after = call.inner_before;
        return write_header(at, call.number, end, Kind::filtered, sizeof returned);
    }
    call.inner_after = call.inner_before + (is_outermost ? 0 : took.ticks);
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
    const Image image = image_of(hit.site);
    const MomentImage &moment = image.moment(Moment::call);
    const auto condition = image[moment.condition];
    const bool is_plain = is_comparison(condition);
    if (is_plain && program::compare_register(condition[0], hit.registers) == 0) return Outcome::filtered;
    const Floats floats(hit, moment.needs);
    const View view = view_of(hit, floats);
    Machine &machine = new_machine(thread, image, view);
    const bool is_wanted = is_plain || holds(machine, image, moment);
    if (needs_ktrace(hit)) return Outcome::for_ktrace;
    if (!is_wanted) return Outcome::filtered;
    Call &call = thread.call[calls];
    call.captured_at = youngest ? (youngest->captured_at + youngest->captured_size + 7) & ~7U : 0;
    call.captured_size = 0;
    if (!is_known_return(hit.threads, place.return_address) || !save_capture(hit, image, moment, machine, call) ||
        needs_ktrace(hit))
        return Outcome::for_ktrace;
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
    auto [tail, calls] = left_by(thread);
    if (calls == 0 || !is_on_own_stack(thread, place.at) || thread.call[calls - 1].place > place.at) return without;
    for (std::size_t ended = 0; calls != 0 && thread.call[calls - 1].place <= place.at; ended++) {
        const Call &call = thread.call[calls - 1];
        const bool has_returned = call.place == place.at && call.return_address == hit.site.site &&
                                  place.return_address == hit.site.site && is_of_now(hit.threads, call);
        if (!has_returned || ended == records_at_once) return ring(hit, Bell::serve);
        std::byte *const at = next_place(thread, tail);
        const std::uint32_t size = finish(hit, --calls, begin, at);
        if (size == 0) return ring(hit, Bell::serve);
        tail += size;
    }
    return stored(hit, Last::nothing, {tail, calls});
}

} // namespace ktrace::agent
