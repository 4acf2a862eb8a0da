#include "engine/transparent/signals/deferred_signals.h"

#include "base/signals.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <unistd.h>

namespace ktrace::engine {

namespace {

constexpr std::uint64_t never_blocked = signal_bit(SIGKILL) | signal_bit(SIGSTOP);

constexpr std::uint64_t blocked_for(std::uint64_t mask) { return (mask | ~synchronous_signals) & ~never_blocked; }

/// Of each real-time signal that comes before those in the queue there is one in there.
void queue_earlier(Task &task) {
    for (const siginfo_t &info : task.earlier.missing()) {
        const auto sent = os::send_again(task.pid, task.tid, info);
        if (sent == os::SentAgain::as_it_was) task.earlier.queued(info);
        if (sent == os::SentAgain::under_our_name) task.earlier.queued_stand_in(info.si_signo);
    }
}

void send_usual_again(Task &task, const siginfo_t &info) {
    if (os::send_again(task.pid, task.tid, info) == os::SentAgain::as_it_was) return;
    // Of one that is pending already the kernel keeps no second one.
    std::erase_if(task.stood_in_for, [&](const siginfo_t &other) { return other.si_signo == info.si_signo; });
    task.stood_in_for.push_back(info);
}

/// One that was sent again under our name.
void tell_sender(Task &task, int signal) {
    auto known = std::find_if(task.stood_in_for.begin(), task.stood_in_for.end(),
                              [&](const siginfo_t &info) { return info.si_signo == signal; });
    if (known == task.stood_in_for.end()) return;
    auto info = os::signal_info(task.tid);
    if (!info || info->si_code != SI_TKILL || (info->si_pid != ::getpid() && info->si_pid != 0)) return;
    os::set_signal_info(task.tid, *known);
    task.stood_in_for.erase(known);
}

/// The real-time signal that comes before the one that has arrived.
void tell_earlier(Task &task) {
    if (auto info = os::signal_info(task.tid)) os::set_signal_info(task.tid, task.earlier.instead_of(*info));
}

} // namespace

void tell_what_is_owed(Engine &engine, Task &task) {
    const bool owes = task.saved_mask || task.saved_dispatch || task.held;
    if (!engine.ledger || (!owes && !task.owed_told)) return;
    task.owed_told = owes;
    if (!owes) {
        engine.ledger->settle(task.tid);
        return;
    }
    recovery::Owed owed{};
    owed.pid = task.pid;
    owed.tid = task.tid;
    owed.has_mask = task.saved_mask.has_value();
    owed.mask = task.saved_mask.value_or(0);
    owed.has_dispatch = task.saved_dispatch.has_value();
    owed.dispatch = task.saved_dispatch.value_or(os::SyscallUserDispatch{});
    if (task.held) owed.held[owed.signals++] = *task.held;
    for (const siginfo_t &info : task.held_more)
        if (owed.signals < owed.held.size()) owed.held[owed.signals++] = info;
    engine.ledger->owe(owed);
}

void block_signals(Engine &engine, Task &task) {
    if (task.saved_mask) return;
    task.saved_mask = os::signal_mask(task.tid);
    if (!task.saved_mask) return;
    tell_what_is_owed(engine, task);
    os::set_signal_mask(task.tid, blocked_for(*task.saved_mask));
}

void give_back_state(Task &task) {
    if (task.saved_mask) os::set_signal_mask(task.tid, *task.saved_mask);
    if (task.saved_dispatch) os::set_dispatch(task.tid, *task.saved_dispatch);
    task.saved_mask.reset();
    task.saved_dispatch.reset();
}

void send_again(Task &task, const std::vector<siginfo_t> &signals) {
    std::vector<siginfo_t> real_time;
    for (const siginfo_t &info : signals)
        if (info.si_signo >= os::first_real_time)
            real_time.push_back(info);
        else
            send_usual_again(task, info);
    task.earlier.add(real_time);
    queue_earlier(task);
}

void keep_for_later(Task &task, const siginfo_t &info) {
    if (!task.held) {
        task.held = info;
        return;
    }
    if (info.si_signo != SIGCONT)
        task.held_more.push_back(info);
    else if (task.held->si_signo != SIGCONT)
        task.held_more.insert(task.held_more.begin(), *std::exchange(task.held, info));
}

void send_on(Task &task, const siginfo_t &info) {
    if (task.over == Over::stepping)
        keep_for_later(task, info);
    else
        send_usual_again(task, info);
}

void tell_as_sent(Task &task, int signal) {
    if (!task.stood_in_for.empty() && signal < os::first_real_time) tell_sender(task, signal);
    if (task.earlier.is_empty()) return;
    if (signal >= os::first_real_time) tell_earlier(task);
    queue_earlier(task); // there may be room by now
}

void pay(Task &task) {
    if (task.saved_dispatch) os::set_dispatch(task.tid, *task.saved_dispatch);
    task.saved_dispatch.reset();
    if (task.saved_mask && os::signal_mask(task.tid) == blocked_for(*task.saved_mask)) give_back_state(task);
    send_again(task, std::exchange(task.held_more, {}));
}

} // namespace ktrace::engine
