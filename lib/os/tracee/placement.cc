#include "os/tracee/placement.h"

#include "os/proc/procfs.h"

namespace ktrace::os {

namespace {

constexpr std::uint32_t alone_after = 64; // stops of one task in a row: it is the only busy one
constexpr std::uint32_t look_every = 256; // stops between two looks at where it runs
constexpr std::uint32_t look_again = 16;  // the same after it was followed
constexpr std::uint32_t try_again = 32;   // looks, until one that has evaded is followed once more

} // namespace

Placement::Placement(os::Waiter &waiter) : waiter_(waiter) { ::sched_getaffinity(0, sizeof allowed_, &allowed_); }

Placement::~Placement() { move_to(-1); }

void Placement::note(const os::Stop &stop) {
    if (stop.tid != last_) {
        last_ = stop.tid;
        in_a_row_ = 0;
        until_look_ = 0;
        evasions_ = 0;
        move_to(-1);
        return;
    }
    if (++in_a_row_ < alone_after) return;
    if (until_look_-- != 0) return;
    until_look_ = look_every;
    look(stop.tid);
}

void Placement::look(Tid tid) {
    auto stat = os::read_task_stat(Pid{tid.value}, tid);
    if (!stat) return;
    const int cpu = stat->processor;
    apart_ = cpu != ::sched_getcpu();
    waiter_.spin(apart_);
    const bool evaded = apart_ && cpu_ >= 0;
    if (!apart_) evasions_ = 0;
    if (evaded || evasions_ != 0) {
        evasions_ = (evasions_ + 1) % try_again;
        if (evasions_ != 0) {
            move_to(-1);
            return;
        }
    }
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed_)) return;
    move_to(cpu);
    if (apart_) until_look_ = look_again;
}

void Placement::move_to(int cpu) {
    if (cpu == cpu_) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= 0) CPU_SET(static_cast<std::size_t>(cpu), &set);
    ::sched_setaffinity(0, sizeof set, cpu >= 0 ? &set : &allowed_);
    cpu_ = cpu;
}

} // namespace ktrace::os
