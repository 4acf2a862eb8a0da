#include "session/calibrate.h"

#include <algorithm>
#include <csignal>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/host.h"
#include "base/clock.h"
#include "os/ptrace.h"
#include "os/stopped.h"

namespace ktrace::session {

namespace {

constexpr std::size_t warm_up = 50, rounds = 400;

/// A page of traps: the child runs from one into the next.
void *trap_page() {
    void *page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return nullptr;
    auto trap = arch::Host::trap_bytes();
    auto *to = static_cast<std::byte *>(page);
    for (std::size_t at = 0; at + trap.size() <= 4096; at += trap.size()) std::copy(trap.begin(), trap.end(), to + at);
    return page;
}

/// How long it takes from just before a task is resumed to its next trap being seen.
std::vector<std::uint64_t> measure(os::Waiter &waiter, Tid tid, VirtAddr first) {
    std::vector<std::uint64_t> samples;
    std::uint64_t resumed_ns = 0;
    for (std::size_t i = 0; i < warm_up + rounds; i++) {
        auto stop = waiter.next_of(tid);
        if (!stop || stop->kind != os::Stop::Kind::signal || stop->signal != SIGTRAP) break;
        if (i > warm_up) samples.push_back(stop->seen_ns - resumed_ns);
        os::Stopped stopped(waiter, *stop);
        stopped.pc();
        stopped.set_pc(first);
        resumed_ns = monotonic_ns();
        std::move(stopped).resume(os::Resume::run);
    }
    return samples;
}

} // namespace

trap::Correction calibrate() {
    void *page = trap_page();
    if (!page) return {};
    // Where the only busy task is traced, ktrace runs on its processor (Placement): so here.
    cpu_set_t before, one;
    ::sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(std::max(0, ::sched_getcpu())), &one);
    ::sched_setaffinity(0, sizeof one, &one);
    pid_t child = ::fork();
    if (child == 0) {
        ::raise(SIGSTOP);
        reinterpret_cast<void (*)()>(page)();
        ::_exit(0);
    }
    trap::Correction correction;
    int status = 0;
    if (child > 0 && ::waitpid(child, &status, WUNTRACED) == child && os::seize(Tid{child}) == 0) {
        os::Waiter waiter;
        waiter.look_often(true);
        ::kill(child, SIGCONT);
        Tid tid{child};
        // Group stop and SIGCONT first; the traps follow.
        while (auto stop = waiter.next_of(tid)) {
            if (stop->kind == os::Stop::Kind::exited || stop->kind == os::Stop::Kind::killed) break;
            if (stop->kind == os::Stop::Kind::signal && stop->signal == SIGTRAP) {
                os::Stopped stopped(waiter, *stop);
                stopped.set_pc(VirtAddr{reinterpret_cast<std::uint64_t>(page)});
                std::move(stopped).resume(os::Resume::run);
                auto samples = measure(waiter, tid, VirtAddr{reinterpret_cast<std::uint64_t>(page)});
                if (!samples.empty()) {
                    std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2),
                                     samples.end());
                    correction.per_stop_ns = samples[samples.size() / 2];
                }
                break;
            }
            os::Stopped stopped(waiter, *stop);
            std::move(stopped).resume(os::Resume::run, stop->kind == os::Stop::Kind::signal ? stop->signal : 0);
        }
    }
    if (child > 0) {
        ::kill(child, SIGKILL);
        ::waitpid(child, &status, __WALL);
    }
    ::sched_setaffinity(0, sizeof before, &before);
    ::munmap(page, 4096);
    return correction;
}

} // namespace ktrace::session
