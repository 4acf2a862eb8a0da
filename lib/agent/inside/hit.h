// Hit: what the agent knows of one, and what all hits have in common.
#pragma once

#include <new>

#include "agent/layout.h"
#include "arch/in_process.h"
#include "arch/isa_detour.h"
#include "program/run/machine.h"

namespace ktrace::agent {

struct Hit {
    const arch::Host::Registers &registers;
    const SiteCode &site;
    Threads &threads;
    Thread &thread;
};

inline program::Image image_of(const SiteCode &site) {
    return program::Image({reinterpret_cast<const std::byte *>(site.image), sizeof(program::ImageHeader)});
}

/// Of the row that the place of the thread's stack chooses, as a counting stub does.
inline std::uint64_t *counter(std::uint64_t in_first_row, const void *stack) {
    const auto page = static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(stack) >> 14);
    const std::uint32_t row = page * 0x9e3779b1U >> 28;
    return reinterpret_cast<std::uint64_t *>(in_first_row + row * arch::counter_row_size);
}

inline Effect filtered(const Hit &hit) {
    hit.thread.last = Last::filtered;
    return {0, counter(hit.site.filtered, &hit.registers)};
}

inline Effect dropped(const Hit &hit) {
    hit.thread.last = Last::dropped;
    return {0, counter(hit.site.dropped, &hit.registers)};
}

/// A hit's effect, before it takes place: the tail of its thread's ring, how many calls there are, and which addition
/// to a row is the last one.
struct Left {
    std::uint64_t tail, calls, addition;
};
inline Left left_by(const Thread &thread) {
    return {tail_of(thread.state), calls_of(thread.state), addition_of(thread.state)};
}

inline bool is_on_own_stack(const Thread &thread, std::uint64_t place) {
    return thread.stack_low <= place && place < thread.stack_high;
}

/// Of one probe of a hit.
enum class Outcome {
    filtered,
    left,       // Left says what
    added,      // to a row: Left has it
    for_ktrace, // it has to serve the hit, and nothing is left
};

/// The thread's state is to be this.
inline Effect stored(const Hit &hit, Last last, const Left &left) {
    hit.thread.last = last;
    hit.thread.last_size = static_cast<std::uint32_t>(left.tail - tail_of(hit.thread.state));
    hit.thread.last_calls = left.calls - calls_of(hit.thread.state);
    return {state_of(left.tail, left.calls, left.addition), &hit.thread.state};
}

inline bool is_heard(const Threads &threads, std::uint64_t now) {
    return now < threads.alive_at || in_ns(now - threads.alive_at, threads.ns_per_tick) < threads.longest_ns;
}

/// The thread stops. Where ktrace is no longer there, or has not run for long, it does not: an entry is dropped; a
/// return goes on, and the calls that end there are not seen to return any more.
inline Effect ring(const Hit &hit, Bell bell) {
    const std::uint64_t now = arch::processor_time();
    if (is_heard(hit.threads, now)) {
        hit.thread.rang_at = now;
        return {static_cast<std::uint64_t>(bell), nullptr};
    }
    if (hit.site.moment != static_cast<std::uint32_t>(program::Moment::ret)) return dropped(hit);
    const std::uint64_t place = arch::place_of_returned(hit.registers).at;
    for (std::uint64_t i = calls_of(hit.thread.state); i > 0 && hit.thread.call[i - 1].place <= place; i--)
        hit.thread.call[i - 1].generation = hit.threads.generation - 1;
    return {1, &hit.threads.nothing};
}

/// The program's floating point registers, kept while a program of ours needs them.
class Floats {
  public:
    Floats(const Hit &hit, const program::Needs &needs)
        : thread_(needs.floating || needs.computes ? &hit.thread : nullptr) {
        static_assert(sizeof(arch::Host::FpRegisters) <= sizeof(Thread::floats));
        if (!thread_) return;
        arch::keep_floats(registers());
        *static_cast<volatile std::uint64_t *>(&thread_->has_floats) = 1; // from now on they can be put back
        arch::use_usual_modes();
    }
    ~Floats() {
        if (!thread_) return;
        arch::put_floats_back(registers());
        *static_cast<volatile std::uint64_t *>(&thread_->has_floats) = 0;
    }
    Floats(const Floats &) = delete;

    const arch::Host::FpRegisters *kept() const { return thread_ ? &registers() : nullptr; }

  private:
    arch::Host::FpRegisters &registers() const { return *reinterpret_cast<arch::Host::FpRegisters *>(thread_->floats); }

    Thread *thread_;
};

/// The one of two that is in use, as a whole: ktrace changes them once in some ms.
template <class T> T now_of(const Turn &turn, const T (&both)[2]) {
    for (;;) {
        const Turn before = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
        const T found = both[before & 1];
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&turn, __ATOMIC_RELAXED) == before) return found;
    }
}

/// In ns, of CLOCK_MONOTONIC.
inline std::uint64_t monotonic_ns(const Threads &threads, std::uint64_t time) {
    const ClockPoint point = now_of(threads.clock_now, threads.clock);
    return time >= point.time ? point.ns + in_ns(time - point.time, threads.ns_per_tick)
                              : point.ns - in_ns(point.time - time, threads.ns_per_tick);
}

/// A hit as a program sees it: the registers, and of a call that has returned its duration and what was kept for it.
struct View : program::HitView {
    /// `time`: of the processor's counter.
    View(const Hit &hit, const program::Needs &needs, std::uint64_t time, std::uint64_t duration = 0,
         std::span<const std::byte> kept = {})
        : program::HitView{hit.registers, nullptr, nullptr, Pid{hit.thread.pid}, Tid{hit.thread.tid}, 0, 0,
                           duration,      kept},
          hit(hit), floats(hit, needs) {
        floating = floats.kept();
        thread_pointer = arch::own_thread_pointer();
        if (needs.nsecs) monotonic_ns = agent::monotonic_ns(hit.threads, time);
    }
    View(const View &) = delete;

    const Hit &hit;
    const Floats floats;
};

/// The hit asks for memory that only ktrace can say more of.
inline bool needs_ktrace(const Hit &hit) { return hit.thread.missed != 0; }

/// A condition that needs no machine.
inline bool is_comparison(std::span<const program::Instr> condition) {
    return condition.size() == 1 && condition[0].op == program::Opcode::compare_register;
}

/// True where the moment's condition holds, or there is none.
inline bool holds(program::Machine &machine, const program::Image &image, const program::MomentImage &moment) {
    if (!moment.has_condition) return true;
    program::NodeWriter nothing({}, 0, false);
    const program::Slot slot = machine.run(image[moment.condition], nothing);
    return slot.state == program::Slot::State::ok && slot.bits != 0;
}

/// In the thread's own memory.
inline program::Machine &new_machine(Thread &thread, const program::Image &image, const program::HitView &view) {
    static_assert(sizeof(program::Machine) <= sizeof(Thread::machine));
    return *new (thread.machine) program::Machine(image, view);
}

} // namespace ktrace::agent
