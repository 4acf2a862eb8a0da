// A wait for one task takes the ends of all others meanwhile: an exec waits for them in the kernel.
#include <cstdlib>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/proc/procfs.h"
#include "os/tracee/wait.h"

namespace ktrace::test {
namespace {

using os::Stop;

struct Pipe {
    Pipe() {
        int ends[2];
        if (::pipe(ends) != 0) std::abort();
        reader = Fd(ends[0]);
        writer = Fd(ends[1]);
    }
    void tell() const { EXPECT_EQ(::write(writer.get(), "x", 1), 1); }
    void hear() const {
        char said = 0;
        if (::read(reader.get(), &said, 1) != 1) ::_exit(1);
    }
    Fd reader, writer;
};

void *exec_when_told(void *pipe) {
    static_cast<Pipe *>(pipe)->hear();
    ::execl("/bin/true", "true", nullptr);
    ::_exit(1);
}

void *do_nothing(void *) { return nullptr; }

void resume(os::Waiter &waiter, Tid tid) {
    ASSERT_EQ(::ptrace(PTRACE_CONT, tid.value, nullptr, nullptr), 0);
    waiter.resumed(tid);
}

Stop next(os::Waiter &waiter) {
    std::optional<Stop> stop;
    while (!stop) stop = waiter.next(os::Waiter::Block::yes);
    return *stop;
}

/// A thread is born traced, and ended by another one's exec before its parent's clone event is served: only the waiter
/// can know that it is there.
TEST(Wait, TakesTheEndOfATaskThatWasBornTracedAndNeverToldOf) {
    Pipe start, exec;
    const pid_t leader = ::fork();
    if (leader == 0) {
        start.hear();
        pthread_t one, other;
        ::pthread_create(&one, nullptr, exec_when_told, &exec);
        ::pthread_create(&other, nullptr, do_nothing, nullptr);
        while (true) ::pause();
    }
    ASSERT_GT(leader, 0);
    ASSERT_EQ(::ptrace(PTRACE_SEIZE, leader, nullptr, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL), 0);
    os::Waiter waiter;
    waiter.watch(Tid{leader});
    start.tell();
    Tid execs{};
    bool told = false;
    while (!told || execs == Tid{}) { // the clone event and the new thread's first stop, in any order
        const Stop stop = next(waiter);
        if (stop.tid.value == leader)
            told = stop.kind == Stop::Kind::clone;
        else
            execs = stop.tid;
    }
    resume(waiter, Tid{leader});
    resume(waiter, execs);
    siginfo_t second{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(leader), &second, WSTOPPED | WEXITED | WNOWAIT), 0);
    ASSERT_EQ(os::read_tasks(Pid{leader}).size(), 3U);

    exec.tell();
    EXPECT_FALSE(waiter.next_of(execs)); // it has its leader's id now
    Stop stop = next(waiter);
    while (stop.kind != Stop::Kind::exec) stop = next(waiter);
    EXPECT_EQ(stop.tid, Tid{leader});
    resume(waiter, stop.tid);
    while (stop.kind != Stop::Kind::exited || stop.tid != Tid{leader}) {
        stop = next(waiter);
        if (stop.kind == Stop::Kind::signal || stop.kind == Stop::Kind::started) resume(waiter, stop.tid);
    }
    EXPECT_EQ(stop.status, 0);
}

} // namespace
} // namespace ktrace::test
