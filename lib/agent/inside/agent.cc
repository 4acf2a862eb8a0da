// The agent: what a hit does in the process itself, in the place of a stop. It has no data, makes no system call, and
// waits for nothing; it knows its thread by the thread pointer.
#include "agent/inside/calls.h"
#include "agent/inside/hit.h"
#include "agent/inside/ring.h"
#include "agent/inside/rows.h"
#include "arch/in_process.h"

namespace ktrace::agent {

namespace {

using program::Image;
using program::Machine;
using program::Moment;
using program::MomentImage;

/// Of the thread that runs this; nullptr: ktrace has not seen it yet.
Thread *own_thread(const Threads &threads) {
    const std::uint64_t pointer = arch::own_thread_pointer();
    std::size_t at = key_of(pointer);
    for (std::size_t i = 0; i < longest_search; i++, at = (at + 1) % keys) {
        const Key &key = threads.key[at];
        if (key.thread_pointer == pointer) return reinterpret_cast<Thread *>(key.thread);
    }
    return nullptr;
}

/// Leaves the record of an event, or of a row of a table. `time`: of the hit; 0: it is not known yet.
Outcome note(const Hit &hit, std::uint64_t time, Left &left) {
    const Image image = image_of(hit.site);
    const MomentImage &moment = image.moment(static_cast<Moment>(hit.site.moment));
    const auto condition = image[moment.condition];
    const bool is_plain = is_comparison(condition);
    if (is_plain && program::compare_register(condition[0], hit.registers) == 0) return Outcome::filtered;
    if (time == 0 && moment.needs.nsecs) time = arch::processor_time();
    const View view(hit, moment.needs, time);
    Machine &machine = new_machine(hit.thread, image, view);
    const bool is_wanted = is_plain || holds(machine, image, moment);
    if (needs_ktrace(hit)) return Outcome::for_ktrace;
    if (!is_wanted) return Outcome::filtered;
    const bool may_add = moment.aggregates && left.addition == addition_of(hit.thread.state); // one of each hit
    if (Row *const row = may_add ? row_of(hit, hit.site.number) : nullptr) {
        program::NodeWriter nothing({}, 0, false);
        const program::Slot value = moment.has_value ? machine.run(image[moment.value], nothing) : program::Slot{};
        if (needs_ktrace(hit)) return Outcome::for_ktrace;
        if (add_value(hit, *row, value, {}, left)) return Outcome::added;
    }
    if (time == 0) time = arch::processor_time();
    std::byte *const at = next_place(hit.thread, left.tail);
    const Payload payload =
        write_payload(machine, image, moment, at + sizeof(RingRecord), longest_record - sizeof(RingRecord));
    if (!payload.fits || needs_ktrace(hit)) return Outcome::for_ktrace;
    left.tail += write_header(at, hit.site.number, time, payload.kind, payload.size);
    return Outcome::left;
}

/// The time of a hit is no part of the calls around it. Gives the time now.
std::uint64_t add_cost(const Hit &hit, std::uint64_t begin) {
    const std::uint64_t now = arch::processor_time();
    hit.thread.cost += now - begin + hit.threads.per_hit;
    hit.thread.hits++;
    return now;
}

bool begins_call(const SiteCode &site) { return site.moment == static_cast<std::uint32_t>(Moment::call); }

/// Under no call of --inside's function, surely: ktrace has seen all that the thread may be under begin.
bool is_outside(const Hit &hit) {
    const std::uint64_t enclosed = *static_cast<const volatile std::uint64_t *>(&hit.thread.enclosed);
    const std::uint64_t place = arch::place_of_begun(hit.registers).at;
    return (enclosed & hit.site.inside) == 0 && is_on_own_stack(hit.thread, place) && !is_in_ktrace(hit.threads, place);
}

Outcome serve_one(const Hit &hit, std::uint64_t begin, Left &left) {
    if (hit.site.inside != 0) return is_outside(hit) ? Outcome::filtered : Outcome::for_ktrace;
    return begins_call(hit.site) ? begin_call(hit, left) : note(hit, begin, left);
}

/// Of several probes at one place: what all of them leave takes effect at once, so one that is filtered leaves a
/// record of that.
Outcome serve_each(const Hit &hit, std::uint64_t begin, Left &left) {
    for (const SiteCode *site = &hit.site; site; site = reinterpret_cast<const SiteCode *>(site->next)) {
        const Outcome outcome = serve_one({hit.registers, *site, hit.threads, hit.thread}, begin, left);
        if (outcome == Outcome::for_ktrace) return outcome;
        if (outcome != Outcome::filtered) continue;
        std::byte *const at = next_place(hit.thread, left.tail);
        left.tail += write_header(at, site->number, begin, Kind::filtered, 0);
    }
    return left.addition == addition_of(hit.thread.state) ? Outcome::left : Outcome::added;
}

Effect serve(const Hit &hit) {
    const bool returns = hit.site.moment == static_cast<std::uint32_t>(Moment::ret);
    Left left = left_by(hit.thread);
    const bool is_timed = returns || hit.thread.times != 0 || left.calls != 0;
    const std::uint64_t begin = is_timed || hit.site.next != 0 ? arch::processor_time() : 0;
    if (returns) {
        const Effect effect = end_calls(hit, begin);
        const std::uint64_t under = effect.place == &hit.thread.state ? calls_of(effect.value) : left.calls;
        if (under != 0 || hit.thread.times != 0) add_cost(hit, begin);
        return effect;
    }
    const std::uint64_t calls = left.calls;
    const Outcome outcome = hit.site.next == 0 ? serve_one(hit, begin, left) : serve_each(hit, begin, left);
    Effect effect{};
    switch (outcome) {
    case Outcome::filtered: effect = filtered(hit); break;
    case Outcome::left: effect = stored(hit, Last::stored, left); break;
    case Outcome::added: effect = stored(hit, Last::added, left); break;
    case Outcome::for_ktrace: effect = ring(hit, Bell::serve); break;
    }
    const std::uint64_t now = is_timed ? add_cost(hit, begin) : 0;
    if (outcome != Outcome::for_ktrace && left.calls != calls) {
        Call &call = hit.thread.call[calls];
        call.cost = hit.thread.cost;
        call.hits = hit.thread.hits;
        call.begin = is_timed ? now : arch::processor_time();
    }
    return effect;
}

/// An entry that is not seen is dropped; a return goes on.
Effect passed(const arch::Host::Registers &registers, const SiteCode &site, Threads &threads) {
    if (site.moment == static_cast<std::uint32_t>(Moment::ret)) return {1, &threads.nothing};
    return {0, counter(site.dropped, &registers)};
}

} // namespace

/// Called by the entry (arch/), which has made `registers` of the thread's.
extern "C" Effect ktrace_agent_hit(const arch::Host::Registers *registers, const SiteCode *site) {
    Threads &threads = *reinterpret_cast<Threads *>(site->threads);
    Thread *thread = own_thread(threads);
    const bool is_return = site->moment == static_cast<std::uint32_t>(Moment::ret);
    if (!thread) {
        const bool is_of_none = is_return && !is_in_ktrace(threads, arch::place_of_returned(*registers).at);
        if (is_of_none) return {1, &threads.nothing};
        if (!is_heard(threads, arch::processor_time())) return passed(*registers, *site, threads);
        return {static_cast<std::uint64_t>(is_return ? Bell::serve : Bell::look), nullptr};
    }
    if (thread->is_busy != 0) return passed(*registers, *site, threads); // a handler above, which ktrace does not see
    if (thread->rang_at != 0) {                                          // it comes again, from the bell
        const std::uint64_t waited = arch::processor_time() - thread->rang_at;
        thread->cost += waited;
        thread->waited += waited;
        thread->rang_at = 0;
    }
    thread->is_busy = 1;
    thread->missed = 0;
    thread->last = Last::nothing;
    const Hit hit{*registers, *site, threads, *thread};
    const Effect effect = is_ring_full(*thread) ? ring(hit, Bell::look) : serve(hit);
    thread->is_busy = 0;
    return effect;
}

} // namespace ktrace::agent
