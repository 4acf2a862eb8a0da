#include "os/self/own_signals.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"

namespace ktrace::os {

namespace {

volatile std::sig_atomic_t caught = 0, parent_is_dead = 0, must_leave = 0;

constexpr std::uint64_t repeat_ns = 5'000'000;

/// SIGALRM in `first_ns`, and then again and again.
void ring(std::uint64_t first_ns) {
    itimerval timer{};
    timer.it_value.tv_sec = static_cast<time_t>(first_ns / 1'000'000'000);
    timer.it_value.tv_usec = static_cast<suseconds_t>(first_ns % 1'000'000'000 / 1000);
    if (timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0) timer.it_value.tv_usec = 1;
    timer.it_interval.tv_usec = repeat_ns / 1000;
    ::setitimer(ITIMER_REAL, &timer, nullptr);
}

void be_silent() {
    itimerval off{};
    ::setitimer(ITIMER_REAL, &off, nullptr);
}

void on_signal(int signal) {
    if (signal == SIGALRM) return; // it only ends a wait
    if (signal == OwnSignals::abandoned) parent_is_dead = 1;
    caught = signal;
    ring(repeat_ns);
}

void on_leaving(int) {
    must_leave = 1;
    ring(repeat_ns);
}

constexpr int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, OwnSignals::abandoned};
constexpr int leaving[] = {SIGXCPU, SIGUSR1, SIGUSR2, SIGPROF, SIGPWR, SIGVTALRM};

void handle(int signal, void (*handler)(int)) {
    if (OwnSignals::stays_ignored(signal)) return;
    struct sigaction action {};
    action.sa_handler = handler; // without SA_RESTART: a wait ends
    sigfillset(&action.sa_mask); // else a Ticker's tick that comes with it would jump away before it is noted
    ::sigaction(signal, &action, nullptr);
}

sigset_t watched_set() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : watched) sigaddset(&set, signal);
    for (int signal : leaving) sigaddset(&set, signal);
    return set;
}

} // namespace

OwnSignals::OwnSignals() {
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_before_);
    for (std::size_t i = 0; i < changed_count; i++) ::sigaction(changed[i], nullptr, &before_[i]);
    for (int signal : watched) handle(signal, on_signal);
    for (int signal : leaving) handle(signal, on_leaving);
    ::signal(SIGPIPE, SIG_IGN);
    // Every stop of a tracee would raise SIGCHLD, and wake the thread that only waits for the tracing one.
    struct sigaction child {};
    child.sa_handler = SIG_DFL;
    child.sa_flags = SA_NOCLDSTOP;
    sigemptyset(&child.sa_mask);
    ::sigaction(SIGCHLD, &child, nullptr);
}

OwnSignals::~OwnSignals() { be_silent(); }

bool OwnSignals::stays_ignored(int signal) {
    if (signal == SIGINT || signal == SIGTERM || signal == SIGALRM || signal == abandoned) return false;
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

void OwnSignals::block() {
    sigset_t set = watched_set();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void OwnSignals::unblock() {
    sigset_t set = watched_set();
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void OwnSignals::on_death_of_parent() { ::prctl(PR_SET_PDEATHSIG, abandoned); }

bool OwnSignals::is_abandoned() const { return parent_is_dead != 0; }

std::function<void()> OwnSignals::waker() {
    return [waiter = ::gettid()] { ::syscall(SYS_tgkill, ::getpid(), waiter, SIGALRM); };
}

void OwnSignals::restore() const {
    for (std::size_t i = 0; i < changed_count; i++) ::sigaction(changed[i], &before_[i], nullptr);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void OwnSignals::start_timer(std::uint64_t ns) {
    deadline_ns_ = monotonic_ns() + ns;
    ring(ns);
}

void OwnSignals::stop_timer() {
    deadline_ns_ = 0;
    must_leave = 0;
    be_silent();
}

bool OwnSignals::time_is_up() const { return must_leave != 0 || (deadline_ns_ != 0 && monotonic_ns() >= deadline_ns_); }

bool OwnSignals::are_pending() { return caught != 0; }

int OwnSignals::take() {
    if (caught == 0) return 0;
    // First the timer: a signal that comes in now starts it again.
    std::uint64_t now = monotonic_ns();
    if (deadline_ns_ == 0 && must_leave == 0)
        be_silent();
    else if (must_leave != 0)
        ring(repeat_ns);
    else
        ring(deadline_ns_ > now ? deadline_ns_ - now : 0);
    int signal = caught;
    caught = 0;
    return signal;
}

} // namespace ktrace::os
