#include "os/wait.h"

#include <algorithm>
#include <cerrno>

#include <csignal>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/clock.h"

namespace ktrace::os {

namespace {

constexpr unsigned quiet_limit = 32; // sweeps without a stop after which a task is no longer looked at one by one
constexpr unsigned discover_every =
    4; // stops served between two looks at a quiet task, while some are busy all the time

bool consumed_at_once(const Stop &stop) {
    switch (stop.kind) {
    case Stop::Kind::signal: return false;
    default: return true;
    }
}

} // namespace

Stop decode_stop(Tid tid, int code, int status) {
    Stop stop;
    stop.tid = tid;
    if (code == CLD_EXITED) {
        stop.kind = Stop::Kind::exited;
        stop.status = status;
        return stop;
    }
    if (code == CLD_KILLED || code == CLD_DUMPED) {
        stop.kind = Stop::Kind::killed;
        stop.status = status;
        return stop;
    }
    stop.signal = status & 0x7f;
    switch (status >> 8) {
    case 0: stop.kind = status == (SIGTRAP | 0x80) ? Stop::Kind::syscall : Stop::Kind::signal; break;
    case PTRACE_EVENT_CLONE: stop.kind = Stop::Kind::clone; break;
    case PTRACE_EVENT_FORK: stop.kind = Stop::Kind::fork; break;
    case PTRACE_EVENT_VFORK: stop.kind = Stop::Kind::vfork; break;
    case PTRACE_EVENT_EXEC: stop.kind = Stop::Kind::exec; break;
    case PTRACE_EVENT_STOP: stop.kind = stop.signal == SIGTRAP ? Stop::Kind::started : Stop::Kind::group; break;
    default: stop.kind = Stop::Kind::started; break;
    }
    return stop;
}

std::optional<Stop> Waiter::poll(int id_type, pid_t id, bool block) {
    siginfo_t info;
    info.si_pid = 0;
    int flags = WEXITED | WSTOPPED | WNOWAIT | __WALL | (block ? 0 : WNOHANG);
    if (::waitid(static_cast<idtype_t>(id_type), static_cast<id_t>(id), &info, flags) != 0) {
        if (errno == ECHILD && id_type == P_ALL) none_left_ = true;
        return std::nullopt;
    }
    if (info.si_pid == 0) return std::nullopt;
    Stop stop = decode_stop(Tid{info.si_pid}, info.si_code, info.si_status);
    if (often_) stop.seen_ns = monotonic_ns();
    if (consumed_at_once(stop)) {
        siginfo_t again;
        ::waitid(P_PID, static_cast<id_t>(info.si_pid), &again, WEXITED | WSTOPPED | __WALL | WNOHANG);
    }
    return stop;
}

Waiter::Known &Waiter::known(Tid tid) {
    if (last_ && last_->tid == tid) return *last_;
    auto &entry = known_[tid.value];
    if (!entry) {
        entry = std::make_unique<Known>();
        entry->tid = tid;
        order_.push_back(entry.get());
    }
    last_ = entry.get();
    return *entry;
}

void Waiter::note(const Stop &stop) {
    Known &task = known(stop.tid);
    if (task.held) return;
    task.held = true;
    task.quiet = 0;
    queue_.push_back(stop);
    if (task.recent) return;
    task.recent = true;
    recent_.push_back(&task);
}

void Waiter::sweep() {
    for (std::size_t i = 0; i < recent_.size();) {
        Known &task = *recent_[i];
        if (!task.held) {
            if (auto stop = poll(P_PID, task.tid.value, false)) {
                note(*stop);
            } else if (++task.quiet > quiet_limit) {
                task.recent = false;
                recent_[i] = recent_.back();
                recent_.pop_back();
                continue;
            }
        }
        i++;
    }
}

/// A P_ALL peek answers with the first of the kernel's list, which may be one that waits here already: ask by name.
void Waiter::ask_one_more() {
    if (order_.empty()) return;
    cursor_ = (cursor_ + 1) % order_.size();
    Known &task = *order_[cursor_];
    if (task.held) return;
    if (auto stop = poll(P_PID, task.tid.value, false)) note(*stop);
}

std::optional<Stop> Waiter::next(Block block) {
    if (!queue_.empty() && ++served_ % discover_every == 0) ask_one_more();
    if (recent_.size() > 1 && (often_ || queue_.empty())) sweep();
    while (queue_.empty()) {
        auto stop = poll(P_ALL, 0, block == Block::yes);
        if (!stop) return std::nullopt;
        Known &task = known(stop->tid);
        bool ended = stop->kind == Stop::Kind::exited || stop->kind == Stop::Kind::killed;
        if (ended) task.held = false; // it died in the stop that was handed out
        if (task.held) {
            sweep();
            if (queue_.empty()) return std::nullopt;
            break;
        }
        note(*stop);
    }
    Stop stop = queue_.front();
    queue_.pop_front();
    return stop;
}

std::optional<Stop> Waiter::next_of(Tid tid) {
    auto same = [&](const Stop &s) { return s.tid == tid; };
    auto queued = std::find_if(queue_.begin(), queue_.end(), same);
    if (queued != queue_.end()) {
        Stop stop = *queued;
        queue_.erase(queued);
        return stop;
    }
    while (true) {
        auto stop = poll(P_PID, tid.value, true);
        if (stop) {
            known(tid).held = true;
            return stop;
        }
        if (errno != EINTR) return std::nullopt;
    }
}

void Waiter::resumed(Tid tid) {
    if (last_ && last_->tid == tid) {
        last_->held = false;
        return;
    }
    auto found = known_.find(tid.value);
    if (found != known_.end()) found->second->held = false;
}

void Waiter::watch(Tid tid) { known(tid); }

void Waiter::forget(Tid tid) {
    std::erase_if(queue_, [&](const Stop &s) { return s.tid == tid; });
    auto found = known_.find(tid.value);
    if (found == known_.end()) return;
    Known *task = found->second.get();
    std::erase(order_, task);
    std::erase(recent_, task);
    if (last_ == task) last_ = nullptr;
    known_.erase(found);
}

} // namespace ktrace::os
