#include "os/tracee/wait.h"

#include <algorithm>
#include <cerrno>

#include <csignal>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/proc/procfs.h"

namespace ktrace::os {

namespace {

constexpr std::uint64_t spin_ns = 50'000; // as long as it takes to be woken on another processor

bool consumed_at_once(const Stop &stop) {
    switch (stop.kind) {
    case Stop::Kind::signal: return false;
    default: return true;
    }
}

bool is_end(const Stop &stop) { return stop.kind == Stop::Kind::exited || stop.kind == Stop::Kind::killed; }

/// News that makes an earlier stop of that id void: it died in the stop, or another thread's exec took the id over.
bool overtakes(const Stop &stop) { return is_end(stop) || stop.kind == Stop::Kind::exec; }

/// waitid(2) as the kernel has it: libc's is a cancellation point, which costs more than all else that a hit does here.
int kernel_waitid(int id_type, pid_t id, siginfo_t &info, int flags) {
    return static_cast<int>(::syscall(SYS_waitid, id_type, id, &info, flags, nullptr));
}

/// No wait for one task alone is for ever. Runs a ticker that does not run already.
class Ticking {
  public:
    Ticking(Ticker &ticker, bool wanted) : ticker_(ticker), started_(wanted && !ticker.running() && ticker.start()) {}
    ~Ticking() {
        if (started_) ticker_.stop();
    }
    Ticking(const Ticking &) = delete;

  private:
    Ticker &ticker_;
    bool started_;
};

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
    if (kernel_waitid(id_type, id, info, flags) != 0) {
        if (id_type == P_ALL) none_left_ = errno == ECHILD;
        return std::nullopt;
    }
    if (info.si_pid == 0) return std::nullopt;
    Stop stop = decode_stop(Tid{info.si_pid}, info.si_code, info.si_status);
    if (often_) stop.seen_ns = monotonic_ns();
    if (consumed_at_once(stop)) {
        siginfo_t again; // the stop that was seen, and not the end that may have come since
        kernel_waitid(P_PID, info.si_pid, again, (is_end(stop) ? WEXITED : WSTOPPED) | __WALL | WNOHANG);
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

void Waiter::note(Known &task, const Stop &stop) {
    if (task.held) {
        if (!overtakes(stop)) return;
        std::erase_if(queue_, [&](const Stop &s) { return s.tid == stop.tid; });
    }
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
                note(task, *stop);
            } else if (++task.quiet > WaitPolicy::quiet_limit) {
                task.recent = false;
                recent_[i] = recent_.back();
                recent_.pop_back();
                continue;
            }
        }
        i++;
    }
}

/// While stops wait to be served: are there more? On one core there are none.
void Waiter::sweep_early() {
    if (!policy_.sweeps_early()) return;
    std::size_t before = queue_.size();
    sweep();
    policy_.swept_early(queue_.size() > before);
}

/// No stop is known: which of the busy tasks have stopped? Where all share one processor with us, each runs up to its
/// stop and then we do: to ask all of them costs more than all else, and a wait for any finds the one that has. As soon
/// as there are two at a time, a wait for any would prefer the first of the kernel's list, and all are asked again.
void Waiter::sweep_if_worthwhile() {
    if (!policy_.sweeps_before_wait(often_)) return;
    sweep();
    policy_.swept_before_wait(queue_.size());
}

/// A P_ALL peek answers with the first of the kernel's list, which may be one that waits here already: ask by name.
void Waiter::ask_one_more() {
    if (order_.empty()) return;
    cursor_ = (cursor_ + 1) % order_.size();
    Known &task = *order_[cursor_];
    if (task.held) return;
    if (auto stop = poll(P_PID, task.tid.value, false)) note(task, *stop);
}

/// The only busy task, whose stop is not known yet.
Waiter::Known *Waiter::only_busy_one() const { return recent_.size() == 1 && !recent_[0]->held ? recent_[0] : nullptr; }

/// The only busy task is about to stop again, on another processor.
void Waiter::ask_for_a_moment() {
    Known *task = only_busy_one();
    if (!policy_.spins(task != nullptr)) return;
    bool found = false;
    for (std::uint64_t end = monotonic_ns() + spin_ns; !found && monotonic_ns() < end;) {
        auto stop = poll(P_PID, task->tid.value, false);
        found = stop.has_value();
        if (stop) note(*task, *stop);
    }
    policy_.spun(found);
}

/// With very many tasks of which one makes all the stops: that one. A stop of another one may be known afterwards.
Waiter::Known *Waiter::waited_for_alone() {
    Known *task = only_busy_one();
    const WaitPolicy::Ask whom = policy_.whom(order_.size(), task != nullptr);
    if (whom == WaitPolicy::Ask::all) return nullptr;
    if (whom == WaitPolicy::Ask::all_then_one)
        if (auto stop = poll(P_ALL, 0, false)) note(known(stop->tid), *stop);
    return task;
}

std::optional<Stop> Waiter::next(Block block) {
    // The only busy task may stop again before we come to wait, on the same processor: a wait for all finds no other.
    if ((!queue_.empty() || recent_.size() == 1) && policy_.looks_at_quiet_one()) ask_one_more();
    if (recent_.size() > 1 && queue_.empty())
        sweep_if_worthwhile();
    else if (recent_.size() > 1 && often_)
        sweep_early();
    if (queue_.empty() && block != Block::no) ask_for_a_moment();
    while (queue_.empty()) {
        Known *alone = waited_for_alone();
        if (!queue_.empty()) break;
        if ((alone && block == Block::yes) || block == Block::briefly) {
            if (!ticker_.start()) { // no waiting for less than all, or for less than ever
                alone = nullptr;
                if (block == Block::briefly) block = Block::no;
            }
        } else {
            ticker_.stop();
        }
        bool wait = block != Block::no;
        auto stop = alone ? poll(P_PID, alone->tid.value, wait) : poll(P_ALL, 0, wait);
        if (!stop && alone && wait) policy_.waited_for_one_in_vain(errno == EINTR);
        if (!stop) return std::nullopt;
        Known &task = known(stop->tid);
        if (task.held && !overtakes(*stop)) {
            sweep();
            if (queue_.empty()) return std::nullopt;
            break;
        }
        note(task, *stop);
    }
    Stop stop = queue_.front();
    queue_.pop_front();
    policy_.hand_out(stop.tid);
    return stop;
}

std::optional<Stop> Waiter::next_of(Tid tid, Block block, const std::function<void()> &at_tick) {
    watch(tid); // a look at the others must not take its stop
    auto same = [&](const Stop &s) { return s.tid == tid; };
    auto queued = std::find_if(queue_.begin(), queue_.end(), same);
    if (queued != queue_.end()) {
        Stop stop = *queued;
        queue_.erase(queued);
        return stop;
    }
    if (block == Block::no && known(tid).held) return std::nullopt;
    const Ticking ticking(ticker_, block == Block::yes);
    auto look = [&](bool wait) {
        auto stop = poll(P_PID, tid.value, wait);
        if (stop) known(tid).held = true;
        return stop;
    };
    while (true) {
        if (auto stop = look(block != Block::no)) return stop;
        if (block == Block::no || errno != EINTR) return std::nullopt;
        if (has_ended(tid)) return look(false); // as a leader before its threads, or just now
        look_at_others(tid);
        if (block == Block::briefly) {
            errno = EINTR;
            return std::nullopt;
        }
        if (at_tick) at_tick();
    }
}

bool Waiter::has_news_of(Tid tid) {
    Known &task = known(tid);
    if (!task.held)
        if (auto stop = poll(P_PID, tid.value, false)) note(task, *stop);
    return task.held;
}

void Waiter::look_at_others(Tid but) {
    for (Known *task : order_) {
        if (task->tid == but) continue;
        if (auto stop = poll(P_PID, task->tid.value, false)) note(*task, *stop);
    }
    // One that was born traced, and has ended before its parent's event was seen: it was not reported yet.
    auto status = read_status(but.value);
    if (!status) return;
    for (Tid tid : read_tasks(Pid{status->tgid}))
        if (!known_.contains(tid.value) && has_ended(tid))
            if (auto stop = poll(P_PID, tid.value, false)) note(known(tid), *stop);
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
