#include "session/placement.h"

#include <charconv>
#include <string>

#include "os/procfs.h"

namespace ktrace::session {

namespace {

constexpr std::uint32_t alone_after = 64; // stops of one task in a row: it is the only busy one
constexpr std::uint32_t look_every = 256; // stops between two looks at where it runs
constexpr std::uint32_t look_again = 16;  // the same after it was followed
constexpr std::uint32_t try_again = 32;   // looks, until one that has evaded is followed once more

/// The processor that a task ran on last (proc(5), stat, field 39); -1: not known.
int processor_of(Tid tid) {
    const std::string id = std::to_string(tid.value);
    auto stat = os::read_file("/proc/" + id + "/task/" + id + "/stat"); // /proc/TID/stat looks at all threads
    if (!stat) return -1;
    std::size_t at = stat->rfind(')'); // field 2 may hold anything
    for (int field = 2; field < 39 && at != std::string::npos; field++) at = stat->find(' ', at + 1);
    if (at == std::string::npos) return -1;
    int cpu = -1;
    std::from_chars(stat->data() + at + 1, stat->data() + stat->size(), cpu);
    return cpu;
}

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
    const int cpu = processor_of(tid);
    if (cpu < 0) return;
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

} // namespace ktrace::session
