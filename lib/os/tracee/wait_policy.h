// WaitPolicy: which tasks a Waiter asks next, decided from the results of the last waits. It asks no task itself and
// makes no system call.
//
// Why there is a choice: a wait for all tasks answers with the first of the kernel's list, which may be one whose stop
// is known already, and costs more the more tasks there are; to ask each busy one by name costs a system call each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"

namespace ktrace::os {

class WaitPolicy {
  public:
    /// The tasks that stopped lately are the busy ones. A sweep asks each of them once.
    static constexpr unsigned quiet_limit = 32;     // sweeps without a stop after which a task is not busy any more
    static constexpr unsigned discover_every = 8;   // stops served between two looks at a quiet task
    static constexpr unsigned fruitless_limit = 32; // early sweeps in vain: all tasks run on this processor, perhaps
    static constexpr unsigned sweep_early_every = 8;
    static constexpr unsigned single_limit = 32; // sweeps that found one stop at most: the tasks take turns with us
    static constexpr unsigned sweep_every = 16;
    static constexpr std::size_t many_tasks =
        64; // from here on a wait for all costs more than one for the only busy task
    static constexpr unsigned alone_after = 32; // stops of one task in a row: the others are idle
    static constexpr unsigned look_at_all_every = 16;
    static constexpr unsigned quiet_ticks = 2; // without a stop: the only busy task is idle, too
    static constexpr unsigned vain_limit = 8;  // spins in a row that found nothing

    /// Stops wait to be served: is a quiet task to be asked, too, before the next one is? Asked once a stop.
    bool looks_at_quiet_one() { return ++served_ % discover_every == 0; }

    /// Stops wait to be served: is there to be a sweep nevertheless, so that others are seen when they stop?
    bool sweeps_early() const { return fruitless_ < fruitless_limit || served_ % sweep_early_every == 0; }
    void swept_early(bool found) { fruitless_ = found ? 0 : fruitless_ + 1; }

    /// No stop is known: is there to be a sweep before a wait? `often`: stops are to be seen when they happen.
    bool sweeps_before_wait(bool often) { return often || single_ < single_limit || ++unswept_ % sweep_every == 0; }
    void swept_before_wait(std::size_t found) { single_ = found > 1 ? 0 : single_ + 1; }

    enum class Ask : std::uint8_t {
        all,
        one,          // the only busy task
        all_then_one, // look at all first
    };
    /// Whose stop is waited for. `one_is_busy`: exactly one task is, and its stop is not known yet.
    Ask whom(std::size_t tasks, bool one_is_busy) {
        if (in_a_row_ < alone_after || tasks < many_tasks || !one_is_busy) return Ask::all;
        return ++looks_ % look_at_all_every == 0 ? Ask::all_then_one : Ask::one;
    }
    /// The wait for the only busy task has ended without a stop: at a tick, or because there is nothing to wait for.
    void waited_for_one_in_vain(bool at_tick) {
        if (!at_tick || ++ticks_ >= quiet_ticks) in_a_row_ = 0;
    }
    /// A stop is handed out.
    void hand_out(Tid tid) {
        in_a_row_ = tid == in_a_row_tid_ ? in_a_row_ + 1 : 0;
        in_a_row_tid_ = tid;
        ticks_ = 0;
    }

    /// Waiting by asking, again and again for a moment, is worth while; or it is not.
    void allow_spins(bool allowed) {
        may_spin_ = allowed;
        vain_spins_ = 0;
    }
    bool spins(bool one_is_busy) const { return may_spin_ && vain_spins_ < vain_limit && one_is_busy; }
    void spun(bool found) { vain_spins_ = found ? 0 : vain_spins_ + 1; }

  private:
    unsigned served_ = 0;    // stops that had others behind them
    unsigned fruitless_ = 0; // early sweeps in a row that found nothing
    unsigned single_ = 0;    // other sweeps in a row that found one stop at most
    unsigned unswept_ = 0;   // waits since that was often so
    unsigned in_a_row_ = 0;  // stops of one task
    unsigned looks_ = 0;     // at one task alone
    unsigned ticks_ = 0;     // since it stopped
    Tid in_a_row_tid_;
    bool may_spin_ = false;
    unsigned vain_spins_ = 0; // in a row
};

} // namespace ktrace::os
