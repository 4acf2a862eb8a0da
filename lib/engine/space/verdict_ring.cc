#include "engine/space/verdict_ring.h"

#include <algorithm>
#include <cstdio>

#include <string.h>

namespace ktrace::engine {

namespace {

using Kind = os::Stop::Kind;

const char *name_of(Verdict verdict) {
    switch (verdict) {
    case Verdict::hit: return "hit";
    case Verdict::hit_again: return "hit_again";
    case Verdict::hit_dispatched: return "hit_dispatched";
    case Verdict::watched: return "watched";
    case Verdict::before_access: return "before_access";
    case Verdict::rang: return "rang";
    case Verdict::late_trap: return "late_trap";
    case Verdict::deliver: return "deliver";
    case Verdict::deliver_behind: return "deliver_behind";
    case Verdict::deliver_fault: return "deliver_fault";
    case Verdict::deliver_retry: return "deliver_retry";
    case Verdict::hold: return "hold";
    case Verdict::step_done: return "step_done";
    case Verdict::step_fault: return "step_fault";
    case Verdict::syscall_entered: return "syscall_entered";
    case Verdict::syscall_left: return "syscall_left";
    case Verdict::own_syscall: return "own_syscall";
    case Verdict::handler_syscall: return "handler_syscall";
    case Verdict::group_stop: return "group_stop";
    case Verdict::go_on: return "go_on";
    case Verdict::new_task: return "new_task";
    case Verdict::new_process: return "new_process";
    case Verdict::exec: return "exec";
    case Verdict::ended: return "ended";
    case Verdict::unknown: return "unknown";
    }
    return "?";
}

const char *name_of(Kind kind) {
    switch (kind) {
    case Kind::signal: return "signal";
    case Kind::syscall: return "syscall";
    case Kind::group: return "group";
    case Kind::started: return "started";
    case Kind::clone: return "clone";
    case Kind::fork: return "fork";
    case Kind::vfork: return "vfork";
    case Kind::exec: return "exec";
    case Kind::exited: return "exited";
    case Kind::killed: return "killed";
    }
    return "?";
}

const char *name_of(os::Resume how) {
    switch (how) {
    case os::Resume::run: return "run";
    case os::Resume::step: return "step";
    case os::Resume::syscall: return "syscall";
    case os::Resume::listen: return "listen";
    case os::Resume::detach: return "detach";
    }
    return "?";
}

/// ` TERM` behind a stop or resume with a signal. (sigabbrev_np reads a table: it allocates nothing.)
struct SignalName {
    char text[16];
    explicit SignalName(int signal) : text{} {
        const char *name = signal == 0 ? nullptr : ::sigabbrev_np(signal);
        if (name)
            std::snprintf(text, sizeof text, " %s", name);
        else if (signal != 0)
            std::snprintf(text, sizeof text, " %d", signal);
    }
};

} // namespace

std::uint64_t VerdictRing::note(const os::Stop &stop, std::optional<VirtAddr> pc, Verdict verdict) {
    const bool has_ended = stop.kind == Kind::exited || stop.kind == Kind::killed;
    Entry &entry = entries_[++noted_ % size];
    entry.pc = pc ? pc->value : 0;
    entry.tid = stop.tid.value;
    entry.kind = stop.kind;
    entry.signal = static_cast<std::uint8_t>(has_ended ? stop.status : stop.signal);
    entry.verdict = verdict;
    entry.is_resumed = false;
    return noted_;
}

void VerdictRing::note_resume(std::uint64_t number, os::Resume how, int signal) {
    Entry &entry = entries_[number % size];
    if (!is_kept(number) || entry.is_resumed) return;
    entry.is_resumed = true;
    entry.how = how;
    entry.resumed_with = static_cast<std::uint8_t>(signal);
}

const char *VerdictRing::line(std::uint64_t number, std::span<char, longest_line> room) const {
    const Entry &entry = entries_[number % size];
    char pc[24] = "-";
    if (entry.pc != 0) std::snprintf(pc, sizeof pc, "0x%llx", static_cast<unsigned long long>(entry.pc));
    char stop[24];
    if (entry.kind == Kind::exited)
        std::snprintf(stop, sizeof stop, "exited %d", entry.signal);
    else
        std::snprintf(stop, sizeof stop, "%s%s", name_of(entry.kind), SignalName(entry.signal).text);
    const SignalName with(entry.is_resumed ? entry.resumed_with : 0);
    std::snprintf(room.data(), room.size(), "%d %s %s → %s → %s%s", entry.tid, stop, pc, name_of(entry.verdict),
                  entry.is_resumed ? name_of(entry.how) : "-", with.text);
    return room.data();
}

void VerdictRing::dump() const noexcept {
    const std::uint64_t kept = std::min<std::uint64_t>(noted_, size);
    if (kept != 0) std::fprintf(stderr, "ktrace: the last %u stops:\n", static_cast<unsigned>(kept));
    char room[longest_line];
    for (std::uint64_t number = noted_ - kept + 1; number <= noted_; number++)
        std::fprintf(stderr, "%s\n", line(number, room));
}

} // namespace ktrace::engine
