// Stops are served until a condition is true; the answer of a task that was asked to stop is the caller's.
#include "trace/run_until.h"

#include <csignal>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/hit/dispatch.h"
#include "os/tracee/ptrace.h"
#include "os/tracee/stopped.h"

namespace ktrace::trace {
namespace {

using os::Stop;
using Kind = Answer::Kind;

std::vector<Stop> served;

/// Nothing is known of the tasks but that they are traced: all their stops are events.
void note_event(Trace &, engine::Event event) {
    served.push_back(event.stop);
    const int signal = event.stop.kind == Stop::Kind::signal ? event.stop.signal : 0;
    if (event.stopped) std::move(*event.stopped).resume(os::Resume::run, signal);
}

void note_end(Trace &, Tid) {}

constexpr EventHandlers handlers{note_event, note_end};
constexpr int harmless = SIGURG; // it makes a task stop, and is ignored then

class RunUntil : public testing::Test {
  protected:
    RunUntil() : trace_(config_, voice_, handlers) { served.clear(); }
    ~RunUntil() override {
        for (Tid tid : children_) {
            ::kill(tid.value, SIGKILL);
            while (::waitpid(tid.value, nullptr, __WALL) > 0) {
            }
        }
    }

    /// A child that is traced and sleeps.
    Tid make_child() {
        const pid_t child = ::fork();
        if (child == 0)
            while (true) ::pause();
        children_.push_back(Tid{child});
        EXPECT_EQ(os::seize(Tid{child}), 0);
        engine::Task &task = trace_.engine.tasks[child];
        task.tid = Tid{child};
        task.pid = Pid{child};
        trace_.engine.waiter.watch(task.tid);
        return task.tid;
    }
    void resume(const std::optional<Stop> &stop) {
        if (stop) os::Stopped(trace_.engine.waiter, *stop).resume(os::Resume::run);
    }

    const Config config_;
    const Voice voice_;
    Trace trace_;
    std::vector<Tid> children_;
};

bool never() { return false; }

TEST_F(RunUntil, HandsTheAnswerOfATaskToTheCaller) {
    const Tid tid = make_child();
    os::interrupt(tid);
    const Answer answer = await_answer(trace_, tid, never);
    ASSERT_EQ(answer.kind, Kind::stands);
    EXPECT_EQ(answer.stop->kind, Stop::Kind::started);
    EXPECT_TRUE(served.empty());
    resume(answer.stop);
}

TEST_F(RunUntil, AsksATaskAgainThatStopsForSomethingElse) {
    const Tid tid = make_child();
    ::kill(tid.value, harmless);
    ASSERT_EQ(await_answer(trace_, tid, never).kind, Kind::served);
    ASSERT_EQ(served.size(), 1U);
    EXPECT_EQ(served[0].signal, harmless);
    const Answer answer = await_answer(trace_, tid, never);
    EXPECT_EQ(answer.kind, Kind::stands);
    resume(answer.stop);
}

TEST_F(RunUntil, WaitsForOneTaskAsLongAsTheCallerWants) {
    const Tid tid = make_child();
    int asked = 0;
    EXPECT_EQ(await_answer(trace_, tid, [&] { return ++asked == 3; }).kind, Kind::given_up);
    EXPECT_EQ(asked, 3);
}

TEST_F(RunUntil, ServesTheEndOfATaskOnce) {
    const Tid tid = make_child();
    ::kill(tid.value, SIGKILL);
    EXPECT_EQ(await_answer(trace_, tid, never).kind, Kind::served);
    ASSERT_EQ(served.size(), 1U);
    EXPECT_EQ(served[0].kind, Stop::Kind::killed);
    EXPECT_EQ(await_answer(trace_, tid, never).kind, Kind::gone);
}

TEST_F(RunUntil, EndsWithItsConditionOrTheLastTracee) {
    const Tid one = make_child(), other = make_child();
    const Serving serving{[] { return Wait::yes; }};
    ::kill(one.value, SIGKILL);
    run_until(
        trace_, [] { return served.size() == 1; }, serving);
    ::kill(other.value, SIGKILL);
    run_until(trace_, never, serving);
    EXPECT_EQ(served.size(), 2U);
}

TEST_F(RunUntil, SaysThatNoneCameInTime) {
    make_child();
    int in_vain = 0;
    run_until(trace_, [&] { return in_vain == 2; },
              {[] { return Wait::briefly; }, [&](const Stop *stop) { in_vain += stop ? 0 : 1; }});
    EXPECT_TRUE(served.empty());
}

/// A wait for any task would answer with the stop of the one that is held.
TEST_F(RunUntil, ServesOthersWhileATaskIsHeldAtASignal) {
    const Tid held = make_child(), other = make_child();
    ::kill(held.value, harmless);
    const auto stop = next_stop_of(trace_, held);
    ASSERT_TRUE(stop);
    ::kill(other.value, harmless);
    serve_each_until(
        trace_, [] { return !served.empty(); }, 100'000);
    ASSERT_EQ(served.size(), 1U);
    EXPECT_EQ(served[0].tid, other);
    resume(stop);
}

} // namespace
} // namespace ktrace::trace
