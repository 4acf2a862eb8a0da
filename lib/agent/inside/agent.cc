// The agent: what a hit does in the process itself, in the place of a stop. It has no data, makes no system call, and
// waits for nothing; it knows its thread by the thread pointer.
#include "agent/inside/calls.h"
#include "agent/inside/hit.h"
#include "agent/inside/ring.h"
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

/// Of an event, or a row of a table.
Effect note(const Hit &hit, std::uint64_t time) {
    const Image image = image_of(hit.site);
    const MomentImage &moment = image.moment(static_cast<Moment>(hit.site.moment));
    const auto condition = image[moment.condition];
    const bool is_plain = is_comparison(condition);
    if (is_plain && program::compare_register(condition[0], hit.registers) == 0) return filtered(hit);
    const View view = view_of(hit);
    Machine &machine = new_machine(hit.thread, image, view);
    const bool is_wanted = is_plain || holds(machine, image, moment);
    if (needs_ktrace(hit)) return ring(hit, Bell::serve);
    if (!is_wanted) return filtered(hit);
    if (time == 0) time = arch::processor_time();
    std::uint64_t tail = tail_of(hit.thread.state);
    std::byte *const at = next_place(hit.thread, tail);
    const Payload payload =
        write_payload(machine, image, moment, at + sizeof(RingRecord), longest_record - sizeof(RingRecord));
    if (!payload.fits || needs_ktrace(hit)) return ring(hit, Bell::serve);
    tail += write_header(at, hit.site.number, time, payload.kind, payload.size);
    hit.thread.last_size = static_cast<std::uint32_t>(tail - tail_of(hit.thread.state));
    return stored(hit, Last::record, state_of(tail, calls_of(hit.thread.state)));
}

/// The time of a hit is no part of the calls around it.
void add_cost(const Hit &hit, std::uint64_t begin) {
    hit.thread.cost += arch::processor_time() - begin + hit.threads.per_hit;
    hit.thread.hits++;
}

Effect serve(const Hit &hit) {
    const auto moment = static_cast<Moment>(hit.site.moment);
    const bool is_timed = moment == Moment::ret || hit.thread.times != 0 || calls_of(hit.thread.state) != 0;
    if (moment == Moment::call) {
        const std::uint64_t begin = is_timed ? arch::processor_time() : 0;
        const Effect effect = begin_call(hit);
        if (is_timed) add_cost(hit, begin);
        if (hit.thread.last != Last::call || !effect.place) return effect;
        Call &call = hit.thread.call[calls_of(hit.thread.state)];
        call.cost = hit.thread.cost;
        call.hits = hit.thread.hits;
        call.begin = arch::processor_time();
        return effect;
    }
    const std::uint64_t begin = is_timed ? arch::processor_time() : 0;
    const Effect effect = moment == Moment::ret ? end_calls(hit, begin) : note(hit, begin);
    if (is_timed) add_cost(hit, begin);
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
        thread->cost += arch::processor_time() - thread->rang_at;
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
