#include "os/interrupts.h"

#include <sys/time.h>

#include "base/clock.h"

namespace ktrace::os {

namespace {

volatile std::sig_atomic_t caught = 0;
volatile std::sig_atomic_t timer_running = 0;

constexpr suseconds_t repeat_us = 5000;

void ring(std::uint64_t first_ns) {
    itimerval timer{};
    timer.it_value.tv_sec = static_cast<time_t>(first_ns / 1'000'000'000);
    timer.it_value.tv_usec = static_cast<suseconds_t>(first_ns % 1'000'000'000 / 1000);
    if (timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0) timer.it_value.tv_usec = 1;
    timer.it_interval.tv_usec = repeat_us;
    ::setitimer(ITIMER_REAL, &timer, nullptr);
}

void on_signal(int signal) {
    if (signal == SIGALRM) return; // it only ends a wait
    caught = signal;
    if (!timer_running) ring(static_cast<std::uint64_t>(repeat_us) * 1000);
}

constexpr int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};

sigset_t watched_set() {
    sigset_t set;
    sigemptyset(&set);
    for (int signal : watched) sigaddset(&set, signal);
    return set;
}

} // namespace

Interrupts::Interrupts() {
    struct sigaction action {};
    action.sa_handler = on_signal; // without SA_RESTART: a wait ends
    sigemptyset(&action.sa_mask);
    for (int signal : watched) {
        struct sigaction before {};
        // nohup: who started ktrace with a signal ignored wants it to be.
        if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN && signal != SIGALRM) continue;
        ::sigaction(signal, &action, nullptr);
    }
    ::signal(SIGPIPE, SIG_IGN);
    // Every stop of a tracee would raise SIGCHLD, and wake the thread that only waits for the tracing one.
    struct sigaction child {};
    child.sa_handler = SIG_DFL;
    child.sa_flags = SA_NOCLDSTOP;
    sigemptyset(&child.sa_mask);
    ::sigaction(SIGCHLD, &child, nullptr);
}

Interrupts::~Interrupts() {
    itimerval off{};
    ::setitimer(ITIMER_REAL, &off, nullptr);
}

void Interrupts::block() {
    sigset_t set = watched_set();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void Interrupts::unblock() {
    sigset_t set = watched_set();
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Interrupts::start_timer(std::uint64_t ns) {
    deadline_ns_ = monotonic_ns() + ns;
    timer_running = 1;
    ring(ns);
}

bool Interrupts::time_is_up() const { return deadline_ns_ != 0 && monotonic_ns() >= deadline_ns_; }

int Interrupts::take() {
    int signal = caught;
    if (signal == 0) return 0;
    caught = 0;
    if (!timer_running) {
        itimerval off{};
        ::setitimer(ITIMER_REAL, &off, nullptr);
    }
    return signal;
}

} // namespace ktrace::os
